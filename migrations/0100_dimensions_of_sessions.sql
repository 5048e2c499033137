-- breaking: no
--
-- Where a visitor came from and with what. The values describe the visit, not the person: an erasure keeps them. `src/core/records/visit.ts`
-- reads them from the URL and the user agent.
alter table sessions
  add column visit_source   text collate "C",
  add column visit_medium   text collate "C",
  add column visit_campaign text collate "C",
  add column visit_content  text collate "C",
  add column visit_term     text collate "C",
  add column visit_referrer text collate "C",
  add column visit_device   text collate "C",
  add column visit_browser  text collate "C",
  add column visit_os       text collate "C",
  add column visit_variant  text collate "C";

-- The projects whose older sessions have no dimensions yet. Background work gives them some, in the order of their ids, and then has
-- all figures of the project computed again.
create table sessions_to_describe (
  project_id text collate "C" primary key references projects (id),
  -- The last session that was described.
  after      text collate "C" not null default ''
);
insert into sessions_to_describe (project_id) select id from projects;

-- People with a session, each counted once in a calendar month.
alter table figures_visits add column visitors bigint not null default 0;
-- People whose first payment it was.
alter table figures_sales add column customers bigint not null default 0;
