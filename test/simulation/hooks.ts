// Replaces source files for a simulation: counted ids, no measuring of real time, and optionally one planted bug.
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { Mutant } from '../mutants/mutant.ts'

const SOURCE = new URL('../../src/', import.meta.url).href

const REPLACED: Record<string, string> = {
  [`${SOURCE}lib/ids.ts`]: './seeded-ids.ts',
  [`${SOURCE}lib/pg/liveness.ts`]: './no-liveness.ts',
}

const loaded = new Set<string>()

/** Throws if a source file was imported before `replaceSources`, because then it uses real ids and real time. */
export function checkReplaced(): void {
  if (!loaded.has(`${SOURCE}lib/pg/db.ts`)) throw new Error('The source was imported before replaceSources was called.')
}

/** Call it before the code under test is imported. */
export function replaceSources(plant?: Pick<Mutant, 'file' | 'code' | 'bug'>, { isSeeded = true } = {}): void {
  registerHooks({
    resolve(specifier, context, next) {
      const resolved = next(specifier, context)
      const other = isSeeded && REPLACED[resolved.url]
      return other ? next(other, { ...context, parentURL: import.meta.url }) : resolved
    },
    load(url, context, next) {
      loaded.add(url)
      if (!plant || url !== `${SOURCE}${plant.file}`) return next(url, context)
      const source = readFileSync(fileURLToPath(url), 'utf8')
      if (!source.includes(plant.code))
        throw new Error(`The bug cannot be planted: ${plant.file} has no "${plant.code}".`)
      return { format: 'module-typescript', source: source.replace(plant.code, () => plant.bug), shortCircuit: true }
    },
  })
}
