-- breaking: no
--
-- Browsers take a backslash in an address for a slash: what follows one is path, not host.
create or replace function origin_only(origin text) returns text language sql immutable as
$$ select case when origin ~ '^[A-Za-z][A-Za-z0-9+.-]*://' then
     regexp_replace(origin, '^([A-Za-z][A-Za-z0-9+.-]*://)([^/?#\\]*@)?([^/?#\\]*).*$', '\1\3') end $$;
