-- breaking: no
--
-- Imports of a service with this API into a project: how far each has come, so that it continues there after a kill.
create table api_imports (
  organization_id text collate "C" not null,
  project_id      text collate "C" not null references projects (id),
  -- The address of the data API that is read.
  source          text collate "C" not null,
  options         jsonb not null,
  status          text not null check (status in ('running', 'following', 'done', 'failed')),
  -- The number of the pass: the first reads everything, later ones what changed.
  pass            integer not null,
  -- The step, the position in it, and the times up to which everything is stored.
  place           jsonb not null,
  -- What was counted, and what could not be imported.
  notes           jsonb not null,
  started_at      timestamptz not null,
  updated_at      timestamptz not null,
  primary key (organization_id, project_id, source)
);

-- The ids that an import has read, with what they count in its sums: nothing is counted twice, and the sums at the service are
-- compared with those stored here.
create table api_import_ids (
  project_id text collate "C" not null,
  source     text collate "C" not null,
  kind       text collate "C" not null,
  id         text collate "C" not null,
  pass       integer not null,
  -- Month, currency and kind of a payment, where it has them.
  label      text collate "C" not null,
  -- In the unit in which the service shows it; of replies their number.
  amount     numeric not null,
  primary key (project_id, source, kind, id)
);
