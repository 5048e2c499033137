-- breaking: no
--
-- An erasure looks for the events that show the user agent of its sessions, also when their subscriptions name others now.
create index events_by_session on events (project_id, (data #>> '{session,id}') collate "C")
  where type like 'subscription.%' and data #>> '{session,user_agent}' is not null;
