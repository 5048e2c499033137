// Mutants of restored backups and of commits that a failover lost.
import type { Mutants } from './mutant.ts'

const clocks = ['test/operations/backup/promises.slow.test.ts']
const erased = ['test/operations/backup/erased.slow.test.ts']
const forgotten = ['test/payments/billing/forgotten-charges.test.ts', 'test/payments/billing/stripe-forgotten.test.ts']
const failover = ['test/failover/failover.slow.test.ts']
const twoProcesses = ['test/failover/two-processes.test.ts']

export const restoreMutants: Mutants = {
  'restored-not-marked': {
    does: 'does not mark organizations whose orders the backup may have forgotten',
    file: 'operations/backup/restore.ts',
    code: `set restored_from = least(restored_from, $1::timestamptz)'`,
    bug: `set restored_from = least(restored_from, $1::timestamptz) where false'`,
    foundBy: 'simulation of restores',
  },
  'forgotten-charge-made-again': {
    does: 'charges a key anew that a restored backup has forgotten',
    file: 'payments/billing/charge/charge.ts',
    code: `if (restoredFrom !== null && provider.findByKey) {`,
    bug: `if (restoredFrom === '' && provider.findByKey) {`,
    foundBy: forgotten,
  },
  'forgotten-handle-cancelled': {
    does: 'cancels an order whose handle a restored backup has forgotten',
    file: 'payments/billing/unknown/unprepared.ts',
    code: `if (!provider.findByKey) return`,
    bug: `if (provider) return`,
    foundBy: ['test/payments/billing/two-steps-later.test.ts'],
  },
  'mark-cleared-too-early': {
    does: 'clears the mark of a restore after a reconciliation that did not reach back to it',
    file: 'payments/billing/unknown/reconcile.ts',
    code: `where restored_from >= $1::timestamptz and`,
    bug: `where $1::timestamptz is not null and`,
    foundBy: forgotten,
  },
  'mark-cleared-beside-an-order-in-progress': {
    does: 'clears the mark of a restore although a refund there waits for the order of its charge',
    file: 'payments/billing/unknown/compare.ts',
    code: `if (organizationId !== undefined) pass.incomplete.add`,
    bug: `if (organizationId === 'none') pass.incomplete.add`,
    foundBy: ['test/payments/billing/reconcile-command.test.ts'],
  },
  'mark-cleared-while-incomplete': {
    does: 'clears the mark of a restore although a charge is missing',
    file: 'payments/billing/unknown/reconcile.ts',
    code: `and not (id = any($2::text[]))`,
    bug: `and $2::text[] is not null`,
    foundBy: forgotten,
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
