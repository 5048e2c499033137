// Checks the statements of a test run, which collect.mjs has recorded.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { migrations } from '../../../src/lib/pg/migrate.ts'
import { EVERYWHERE, EXCEPTIONS } from './exceptions.ts'
import { type Breach, breachesOf, type Rule } from './rules.ts'

export interface Judgement {
  /** Distinct statements of the program, and the files that sent them. */
  statements: number
  files: Set<string>
  /** Breaches without an exception: a sentence for each, with the statement. */
  breaches: string[]
  /** Exceptions that no statement needed. */
  needless: string[]
}

export async function judgeStatements(folder: string): Promise<Judgement> {
  const tables = await tenantTables()
  const all = notedIn(folder)
  const breaches = new Map<string, string>()
  const needed = new Set<string>()
  for (const { text, origin } of all) {
    for (const breach of breachesOf(text, tables)) {
      const { rule, what } = breach
      if (isExcepted(origin, breach)) needed.add(`${origin} ${rule}`)
      else
        breaches.set(
          `${origin} ${rule} ${what}`,
          `${origin || 'unknown file'}: ${SENTENCES[rule]} (${what}):\n${text.trim()}`,
        )
    }
  }
  const excepted = Object.entries(EXCEPTIONS).flatMap(([file, rules]) =>
    Object.keys(rules).map((rule) => `${file} ${rule}`),
  )
  return {
    statements: all.length,
    files: new Set(all.map(({ origin }) => origin)),
    breaches: [...breaches.values()],
    needless: excepted.filter((one) => !needed.has(one)),
  }
}

const SENTENCES: Record<Rule, string> = {
  tenant: 'a table is read or written without organization_id or project_id = $n',
  lock: 'rows of all tenants are locked',
  'empty select': 'a select has no columns',
  'clock in set': 'an update sets what differs from server to server',
  'insert beside read': 'an insert in a "with" clause is beside a read of the same table',
}

const isExcepted = (origin: string, { rule, what }: Breach) =>
  EXCEPTIONS[origin]?.[rule] !== undefined || EVERYWHERE[`${rule}: ${what}`] !== undefined

interface Noted {
  text: string
  origin: string
}

/** The distinct statements, without those of the tests themselves. */
function notedIn(folder: string): Noted[] {
  const lines = readdirSync(folder).flatMap((file) => readFileSync(join(folder, file), 'utf8').split('\n'))
  return [...new Set(lines)]
    .flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Noted]))
    .filter(({ origin }) => origin !== 'test')
}

/** The tables with a tenant's column, from the migrations. */
export async function tenantTables(): Promise<Set<string>> {
  const text = (await migrations()).map(({ sql }) => sql).join('\n')
  const tables = text.matchAll(/^create table (\w+) \((.*?)\n\)/gms)
  const tenants = [...tables].filter(([, , columns]) => /^\s*(organization_id|project_id)\s/m.test(columns!))
  return new Set(['organizations', 'projects', ...tenants.map(([, name]) => name!)])
}
