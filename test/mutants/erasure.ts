// Mutants of erasure and of concurrent imports.
import type { Mutants } from './mutant.ts'

const erasure = ['test/core/erasure/erasure.test.ts']
const traces = ['test/core/erasure/traces.test.ts', ...erasure]

export const erasureMutants: Mutants = {
  'erasure-keeps-event-payloads': {
    does: 'keeps personal data in the stored payloads of events',
    file: 'core/erasure/effects.ts',
    code: `  ...emptied(EVENTS),\n]`,
    bug: `]`,
    foundBy: traces,
  },
  'erasure-keeps-metadata': {
    does: 'keeps the metadata of charges',
    file: 'core/erasure/effects.ts',
    code: 'update orders set client_metadata = null',
    bug: 'update orders set client_metadata = client_metadata',
    foundBy: traces,
  },
  'erasure-silent-to-syncs': {
    does: 'does not stamp the subscriptions of an erased person',
    file: 'core/erasure/effects.ts',
    code: 'update subscriptions set updated_at = ${STAMP} where project_id = $1 and profile_id = any($2)',
    bug: 'update subscriptions set updated_at = updated_at where project_id = $1 and profile_id = any($2)',
    foundBy: erasure,
  },
  'erasure-stamps-in-the-past': {
    does: 'stamps an erased profile before the horizon',
    file: 'core/erasure/effects.ts',
    code: `greatest(db_clock(), $3::timestamptz, updated_at + interval '1 microsecond')`,
    bug: `greatest($3::timestamptz - interval '1 hour', updated_at)`,
    foundBy: ['test/core/lists/horizon.slow.test.ts', ...erasure],
  },
  'erasure-of-some': {
    does: 'erases the known profiles although one is unknown',
    file: 'core/erasure/erasure.ts',
    code: `if (missing.length > 0) return { missing, erased: [], twins: [] }`,
    bug: `if (known.size === 0) return { missing, erased: [], twins: [] }`,
    foundBy: erasure,
  },
  'erasure-without-ledger': {
    does: 'does not enter an erasure in the file',
    file: 'core/erasure/ledger.ts',
    code: `if (lines.length > 0) await appendLines(`,
    bug: `if (lines.length > 1e9) await appendLines(`,
    foundBy: ['test/core/erasure/ledger.test.ts', ...erasure],
  },
}
