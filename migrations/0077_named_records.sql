-- breaking: no
--
-- What records name that is not there yet: Stripe's metadata may name a session that arrives after its payment. A row is deleted when
-- it is linked. `record` is `profile` for a profile that is to be merged into the one that it names, or into that of a session.
create table waiting_links (
  project_id text collate "C" not null references projects (id),
  record     text collate "C" not null check (record in ('profile', 'subscription', 'transaction')),
  id         text collate "C" not null,
  field      text collate "C" not null check (field in ('profile_id', 'session_id', 'funnel_id', 'experiment_id')),
  named      text collate "C" not null,
  created_at timestamptz not null,
  primary key (project_id, record, id, field)
);
create index waiting_links_by_name on waiting_links (project_id, field, named);

-- Customers are read after what refers to them now. An import that is interrupted begins again: what is stored stays unchanged.
update stripe_imports set step = 'products', after = null,
  tally = '{"figures": {}, "rejected": 0, "rejects": [], "own": 0, "erased": 0, "read": 0}'
where step <> 'events';
