-- breaking: no
--
-- A key may have a lower request rate than the other keys of its project or organization.
alter table secret_keys
  add column rate_limit int check (rate_limit between 1 and 1000000),
  add column rate_limit_burst int check (rate_limit_burst between 1 and 10000000),
  add check ((rate_limit is null) = (rate_limit_burst is null));
