-- breaking: no
--
-- Answers of the questions of a screen, by the day on which the session began. Key is the funnel, subkey the screen. `kind` is `all` for
-- the replies themselves, else what a reply contains: `value` (a choice, in `value`), `written`, `empty`, `erased`, or `other` for
-- choices beyond the 1,000 most frequent ones of a day.
create table figures_answers (
  project_id text collate "C" not null,
  split      text collate "C" not null,
  day        date not null,
  test       boolean not null,
  key        text collate "C" not null,
  subkey     text collate "C" not null,
  element    text collate "C" not null,
  kind       text collate "C" not null,
  value      text collate "C" not null,
  sessions   bigint not null,
  paid       bigint not null,
  -- A page reads one screen, over any number of days.
  primary key (project_id, split, key, subkey, day, test, element, kind, value)
);

-- The days that are computed again.
create index figures_answers_by_day on figures_answers (project_id, day);

insert into figure_marks (project_id, family, day)
select distinct s.project_id, 'visits', (s.created_at at time zone 'UTC')::date
from sessions s where exists (select from replies r where r.project_id = s.project_id and r.session_id = s.id);
