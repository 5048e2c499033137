-- breaking: no
--
-- What an operator may do, and where. A process of the previous version sees owners as `write` and all others as `read`, everywhere: keys
-- of the new roles are made when none runs any more.
alter table operator_keys
  add column role text collate "C" not null default 'read'
    check (role in ('owner', 'developer', 'support', 'finance', 'analyst', 'read')),
  -- Both null: the whole installation. Otherwise the organizations with all of their projects, and single projects.
  add column organizations text[] collate "C",
  add column projects text[] collate "C",
  -- For `support`: the most that may be refunded of one charge, in major units by currency.
  add column refund_limits jsonb,
  add check ((organizations is null) = (projects is null)),
  add check (cardinality(organizations) + cardinality(projects) > 0);
update operator_keys set role = 'owner' where scope = 'write';
