-- breaking: no
--
-- What the metadata of a checkout session at Stripe names, for what was bought in it: the import reads sessions before subscriptions
-- and charges.
create table stripe_checkouts (
  organization_id text collate "C" not null,
  project_id      text collate "C" not null,
  -- The id of a subscription or of a payment intent.
  bought          text collate "C" not null,
  -- Ids of a profile, a session, a funnel, an experiment.
  names           json not null,
  primary key (organization_id, project_id, bought)
);
