-- breaking: no
--
-- An erasure looks for the subscriptions that show the user agent of its sessions, also under another profile.
create index subscriptions_by_session on subscriptions (project_id, session_id) where session_id is not null;
