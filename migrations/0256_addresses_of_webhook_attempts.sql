-- breaking: no
--
-- An endpoint may get another URL: each attempt keeps the one to which it was made.
alter table webhook_attempts
  -- Null for an attempt of an older program, which is shown with the present URL of the endpoint.
  add column url text;
