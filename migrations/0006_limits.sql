-- breaking: no
--
-- How many requests a key may send: what the operator set, and what all processes together have counted.

-- Requests a second, and how many at once on top; null is the default of the settings, a rate of 0 no limit.
alter table organizations
  add column rate_limit int check (rate_limit between 0 and 1000000),
  add column rate_limit_burst int check (rate_limit_burst between 1 and 10000000),
  add check ((rate_limit is null) = (rate_limit_burst is null));
alter table projects
  add column rate_limit int check (rate_limit between 0 and 1000000),
  add column rate_limit_burst int check (rate_limit_burst between 1 and 10000000),
  add check ((rate_limit is null) = (rate_limit_burst is null));

-- A leaky bucket for each busy key, as one instant: until then the key's requests so far take, at its rate. Lost in a
-- crash, when every bucket begins empty, and in exchange its writing costs next to nothing.
create unlogged table key_usage (
  key_id     uuid primary key,
  busy_until timestamptz not null
) with (fillfactor = 50);

-- Adds requests worth `seconds` of its rate to a key's bucket, and answers how many seconds are in it now. It never holds
-- more than `most`; what says so was written before the clock was set back.
create function spend(key uuid, seconds float8, most float8) returns float8 language sql volatile as $$
  insert into key_usage as u (key_id, busy_until) values (key, db_clock() + make_interval(secs => seconds))
  on conflict (key_id) do update set busy_until = least(
    db_clock() + make_interval(secs => most),
    make_interval(secs => seconds) +
      case when u.busy_until > db_clock() + make_interval(secs => most) then db_clock()
           else greatest(u.busy_until, db_clock()) end)
  returning extract(epoch from busy_until - db_clock())::float8
$$;
