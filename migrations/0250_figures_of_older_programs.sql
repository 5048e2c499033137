-- breaking: no
--
-- During an upgrade, and after a way back, a program may compute figures that is older than the schema: it does not know the newest
-- columns and families. The days that it took the marks of, which a program of this schema computes again; the family `all` is all days.
create table figures_by_older (
  project_id text collate "C" not null references projects (id),
  family     text collate "C" not null,
  day        date not null,
  primary key (project_id, family, day)
);

-- When a program that knows the migrations up to `version` last looked for figures to compute. Older ones leave them to it.
create table figure_programs (
  version int primary key,
  seen_at timestamptz not null
);
