-- breaking: no
--
-- Other ids of a profile: a profile that was merged into it, which remains without personal data, or a customer at the payment
-- provider who was its person already. What names such an id is taken as naming the profile.
create table profile_aliases (
  project_id text collate "C" not null references projects (id),
  alias      text collate "C" not null,
  -- Never an alias itself: a merge of it takes its aliases along.
  profile_id text collate "C" not null,
  created_at timestamptz not null,
  primary key (project_id, alias),
  foreign key (project_id, profile_id) references profiles (project_id, id),
  check (alias <> profile_id)
);
create index profile_aliases_by_profile on profile_aliases (project_id, profile_id);
