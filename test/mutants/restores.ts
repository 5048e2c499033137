// Mutants of restored backups and of commits that a failover lost.
import type { Mutants } from './mutant.ts'

const clocks = ['test/operations/backup/promises.slow.test.ts']
const erased = ['test/operations/backup/erased.slow.test.ts']
const lost = ['test/payments/billing/lost-movements.test.ts']
const unlisted = ['test/operations/backup/unlisted.test.ts']
const failover = ['test/failover/failover.slow.test.ts']
const twoProcesses = ['test/failover/two-processes.test.ts']

export const restoreMutants: Mutants = {
  'restored-not-marked': {
    does: 'does not mark the merchant accounts of a restored backup',
    file: 'operations/backup/accounts.ts',
    code: `to_jsonb(m) ->> 'is_sandbox' is not null`,
    bug: `to_jsonb(m) ->> 'is_sandbox' is null`,
    foundBy: unlisted,
  },
  'older-mark-overwritten': {
    does: 'forgets the time of an older restore that the backup carries',
    file: 'operations/backup/accounts.ts',
    code: `set since = least(u.since, excluded.since)`,
    bug: `set since = excluded.since`,
    foundBy: unlisted,
  },
  'charged-before-accounts-are-listed': {
    does: 'charges a new key while an account has to be listed after a restore',
    file: 'payments/billing/charge/claim.ts',
    code: `when lost.transaction_id is null and \${mayHaveCharged('a.organization_id')} then`,
    bug: `when lost.transaction_id is null and a.organization_id = '' then`,
    foundBy: lost,
  },
  'lost-charge-made-again': {
    does: 'charges a key anew that was charged at another account',
    file: 'payments/billing/charge/claim.ts',
    code: `l.provider_key = a.provider_key and l.type = 'charge'`,
    bug: `l.provider_key = a.provider_key and l.type = 'refund'`,
    foundBy: lost,
  },
  'lost-movement-not-stored': {
    does: 'reports a lost charge and does not store it',
    file: 'payments/billing/reconcile/compare.ts',
    code: `if (organizationId !== null) await storeLost`,
    bug: `if (organizationId === '') await storeLost`,
    foundBy: lost,
  },
  'forgotten-handle-cancelled': {
    does: 'cancels an order whose handle a failover has lost',
    file: 'payments/billing/charge/check.ts',
    code: `if (!provider.findByKey) return`,
    bug: `if (provider) return`,
    foundBy: ['test/payments/billing/two-steps-later.test.ts'],
  },
  'listed-handle-ignored': {
    does: 'does not take the handle of an order in progress from the list',
    file: 'payments/billing/reconcile/compare.ts',
    code: `if (row?.status === 'processing') await kind.rememberHandle`,
    bug: `if (row === null) await kind.rememberHandle`,
    foundBy: lost,
  },
  'adopted-without-disputes': {
    does: 'adopts a charge whose disputes could not be read, as if it had none',
    file: 'payments/billing/charge/adopt.ts',
    code: `disputes.missingPermission === undefined`,
    bug: `(disputes.why === '' && disputes)`,
    foundBy: ['test/payments/billing/stripe-forgotten.test.ts'],
  },
  'listed-too-late': {
    does: 'counts an account as listed by a reconciliation that did not reach back an hour before the backup',
    file: 'payments/billing/movement/unlisted.ts',
    code: `\${listedFrom('o.since')} >= $1`,
    bug: `$1::timestamptz is not null`,
    foundBy: ['test/payments/billing/stripe-forgotten.test.ts'],
  },
  'own-charge-imported': {
    does: 'imports a charge of ours whose order is lost as a payment of others',
    file: 'data/ingest/stripe/own-charges.ts',
    code: `&& !metadataOf(object)['tundish_key']`,
    bug: `&& metadataOf(object) !== undefined`,
    foundBy: ['test/data/ingest/stripe/edges.slow.test.ts'],
  },
  'sync-goes-back-with-a-restore': {
    does: 'restores the clock of a project as the backup has it',
    file: 'operations/backup/clocks.ts',
    code: `greatest(c.floor, db_clock(), f.floor) as floor`,
    bug: `c.floor as floor`,
    foundBy: clocks,
  },
  'report-goes-back-with-a-restore': {
    does: 'restores the clock of a report as the backup has it',
    file: 'operations/backup/clocks.ts',
    code: `set last_trx_created_at = greatest(c.last_trx_created_at, db_clock(),`,
    bug: `set last_trx_created_at = least(c.last_trx_created_at, db_clock(),`,
    foundBy: clocks,
  },
  'restore-untold-to-readers': {
    does: 'tells no reader that what was read since the backup is void',
    file: 'operations/backup/clocks.ts',
    code: `void_from = least(c.void_from, c.horizon)`,
    bug: `void_from = greatest(c.void_from, r.floor)`,
    foundBy: clocks,
  },
  'erased-back-with-a-restore': {
    does: 'leaves persons of the ledger file in a restored database',
    file: 'operations/backup/erased.ts',
    code: `from erased group by 1, 2 order by 1, 2`,
    bug: `from erased where not in_our_file group by 1, 2 order by 1, 2`,
    foundBy: erased,
  },
  'replaced-erasures-forgotten': {
    does: 'forgets the erasures of the database that a restore replaces',
    file: 'operations/backup/erased.ts',
    code: `false as in_our_file from erasures\``,
    bug: `false as in_our_file from erasures where false\``,
    foundBy: erased,
  },
  'lost-commits-unnoticed': {
    does: 'takes a heartbeat that is behind the one known for a new one',
    file: 'operations/failover/watch.ts',
    code: `!isOther && number < known.number`,
    bug: `!isOther && number < 0n`,
    foundBy: twoProcesses,
  },
  'possible-loss-stays-possible': {
    does: 'believes the process that recorded the failover first, although it knew less',
    file: 'operations/failover/watch.ts',
    code: `known !== undefined && generation !== known.generation`,
    bug: `known !== undefined && generation < known.generation`,
    foundBy: twoProcesses,
  },
  'lost-commits-untold': {
    does: 'writes no event about lost commits',
    file: 'operations/failover/announce.ts',
    code: `where loss <> 'none' and announced_at is null`,
    bug: `where loss = 'none' and announced_at is null`,
    foundBy: failover,
  },
}
