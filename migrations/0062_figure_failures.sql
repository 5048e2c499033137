-- breaking: no
--
-- Days whose figures could not be computed: the other days of the project go on, and these are tried again later. What is stored
-- of such a day is what it was before.
create table figure_failures (
  project_id      text collate "C" not null references projects (id),
  family          text collate "C" not null,
  day             date not null,
  -- The SQLSTATE: a message may quote a row.
  code            text collate "C" not null,
  failed_at       timestamptz not null,
  next_attempt_at timestamptz not null,
  primary key (project_id, family, day)
);
