// Loaded into each process of a run: replaces one source file by its mutant, which TUNDISH_MUTANT names.
import { replaceSources } from '../simulation/hooks.ts'
import { mutants } from './mutants.ts'

// The simulation plants its mutants itself.
const name = process.argv[1]?.includes('simulation') ? undefined : process.env['TUNDISH_MUTANT']
if (name !== undefined) replaceSources(mutants[name], { isSeeded: false })
