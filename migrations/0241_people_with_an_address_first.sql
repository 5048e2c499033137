-- breaking: no
--
-- Lists of people begin with those who have an e-mail address; the others follow.
create index profiles_with_address on profiles (project_id, created_at, id) where email_folded is not null;
create index profiles_without_address on profiles (project_id, created_at, id) where email_folded is null;
