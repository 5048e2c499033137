-- breaking: no
--
-- People in experiments, by the day of their first session in the experiment: what they did within 90 days. Key is the experiment, subkey
-- the variant of that session. The sum of squares of the revenue of each person makes the variance known.
create table figures_experiments (
  project_id text collate "C" not null,
  split      text collate "C" not null,
  day        date not null,
  test       boolean not null,
  key        text collate "C" not null,
  subkey     text collate "C" not null,
  people     bigint not null,
  payers     bigint not null,
  trials     bigint not null,
  trials_paid bigint not null,
  refunded   bigint not null,
  net_usd    numeric not null,
  net_usd_squares numeric not null,
  without_usd bigint not null,
  primary key (project_id, split, day, test, key, subkey)
);

-- The figures of stored sessions.
insert into figure_marks (project_id, family, day)
select distinct project_id, 'experiments', (created_at at time zone 'UTC')::date from sessions where experiment_id is not null;
