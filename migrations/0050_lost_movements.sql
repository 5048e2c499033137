-- breaking: yes
--
-- Replaces the mark of a restored backup, `organizations.restored_from`, under which each charge looked up its key at one
-- account: a key that was charged at another account was charged again.

-- Merchant accounts whose movements since a backup, or since commits that a failover lost, were not listed yet. While an organization
-- has one, its new keys are not charged. Older programs do not know this, so they must not run beside newer ones.
create table unlisted_accounts (
  organization_id text collate "C" not null references organizations (id),
  psp             text collate "C" not null,
  psp_merchant_id text collate "C" not null,
  -- The time of the backup, or of the first lost commit.
  since           timestamptz not null,
  -- `restore`: an operator's reconciliation lists it. `failover`: the workers list it at once.
  cause           text not null check (cause in ('restore', 'failover')),
  -- Until then a worker lists it.
  lease_until     timestamptz,
  primary key (organization_id, psp, psp_merchant_id)
);

-- Movements of money that Tundish made and that have no order here. A claim looks its provider key up in them, so they are kept.
create table lost_movements (
  organization_id       text collate "C" not null references organizations (id),
  psp                   text collate "C" not null,
  psp_merchant_id       text collate "C" not null,
  -- The provider's id.
  transaction_id        text collate "C" not null,
  type                  text not null check (type in ('charge', 'refund')),
  -- `failed`: declined, so that no money moved, but its key was used.
  state                 text not null check (state in ('moved', 'pending', 'failed')),
  -- Null for a refund that was made at the provider.
  provider_key          text collate "C",
  -- Our id of the order or refund, as the provider has it.
  reference             text,
  -- Of a refund: the charge that it pays back.
  charge_transaction_id text collate "C",
  -- The provider's customer who was charged.
  provider_customer     text collate "C",
  amount                numeric not null,
  currency_code         text not null,
  moved_at              timestamptz not null,
  found_at              timestamptz not null,
  -- The order by which an operator has adopted a charge, without the caller's key, which is not known.
  order_id              uuid,
  -- An operator's decision that another installation made it with the same account.
  accepted_at           timestamptz,
  accepted_because      text,
  primary key (organization_id, psp, psp_merchant_id, type, transaction_id),
  check ((accepted_at is null) = (accepted_because is null))
);
-- Each claim reads it.
create index lost_movements_by_key on lost_movements (organization_id, provider_key) where type = 'charge';
-- Each refund reads it.
create index lost_movements_by_charge on lost_movements (organization_id, charge_transaction_id) where type = 'refund';

insert into unlisted_accounts (organization_id, psp, psp_merchant_id, since, cause)
select g.id, m.psp, m.psp_merchant_id, g.restored_from, 'restore'
from organizations g join merchant_accounts m on m.organization_id = g.id
where g.restored_from is not null and m.psp <> 'simulator' and m.is_sandbox is not null;

-- Records a failover, or a loss, once: the first process that notices it does the work, and one that knows a later beat
-- than it did turns it into a certain loss. Raises every clock of a promise above whatever was given out before, and marks
-- what readers hold. Workers list what the providers have moved since. Returns what was recorded, if anything.
create or replace function note_failover(known_generation bigint, known_number bigint, known_until timestamptz)
returns setof failovers language plpgsql volatile as $$
declare
  beat  commit_beat;
  past  failovers;
  found_loss text;
  raised timestamptz;
begin
  select * into strict beat from commit_beat for update;
  select * into past from failovers f where f.generation > known_generation order by f.generation limit 1;
  if past.generation is not null then
    if past.loss = 'certain' or (past.last_generation, past.last_number) >= (known_generation, known_number) then
      return;
    end if;
    found_loss := 'certain';
    update failovers set loss = found_loss, announced_at = null where generation = past.generation
    returning * into past;
  else
    found_loss := case when (beat.generation, beat.number) < (known_generation, known_number) then 'certain'
      when beat.timeline = wal_timeline() then null
      when beat.waits then 'none' else 'possible' end;
    if found_loss is null then return; end if;
    insert into failovers (generation, last_generation, last_number, timeline, noticed_at, loss, lost_from)
    values (greatest(beat.generation, known_generation) + 1, beat.generation, beat.number, wal_timeline(), db_clock(),
      found_loss, beat.safe_until)
    returning * into past;
    update commit_beat set generation = past.generation, number = 0, timeline = wal_timeline(), waits = commits_wait(),
      at = db_clock(), safe_until = safe_until();
  end if;

  raised := greatest(known_until, beat.at, db_clock());
  perform from project_clocks order by project_id for update;
  update project_clocks c set floor = greatest(c.floor + interval '1 microsecond', raised),
    void_from = case when found_loss = 'none' then c.void_from else least(c.void_from, past.lost_from) end,
    void_until = case when found_loss = 'none' then c.void_until
      else greatest(c.void_until, c.floor + interval '1 microsecond', raised) end;
  perform from organization_clocks order by organization_id for update;
  update organization_clocks set last_trx_created_at = greatest(last_trx_created_at, raised);
  if found_loss <> 'none' then
    insert into unlisted_accounts as u (organization_id, psp, psp_merchant_id, since, cause)
    select organization_id, psp, psp_merchant_id, past.lost_from, 'failover' from merchant_accounts
    where credentials is not null order by 1, 2, 3
    on conflict (organization_id, psp, psp_merchant_id) do update set since = least(u.since, excluded.since);
  end if;
  return next past;
end $$;

alter table organizations drop column restored_from;
