// Makes recorded statements repeatable: each id in them is replaced by a new one whenever pgbench runs the script.
import type { Param } from '../src/lib/pg/types.ts'
import { ORGANIZATION } from './generate.ts'
import type { Recorded, Script } from './tools.ts'

const IDS =
  /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<=trn_)[0-9A-HJKMNP-TV-Z]{26}|\b[0-9a-f]{64}\b|\brecorded\b|\bbench\b|(?<=pm_card_visa )1\b|(?<=pro_1_)1\b/g

// Each client has its own customers, because a second concurrent charge of a customer would be refused.
const CLIENTS = 32

/**
 * The statements as a script of pgbench, whose first statement creates the ids of one run. A parameter that is an id becomes a
 * variable; one that contains ids in a longer text is concatenated.
 */
export function repeatable(statements: Recorded[], customers: number, organizations: number): Script {
  const fresh = new Map<string, string>()
  const variables: string[] = []
  const lines = statements.map(({ text, params, types = [] }, n) => {
    const one = text.trim().replaceAll(/\s+/g, ' ')
    // A variable that is used twice becomes two parameters, each of which needs its type.
    const typed = (k: number) => `${expression(params[k - 1]!, `p${n}_${k}`, fresh, variables)}::${types[k - 1]}`
    return `${one.replaceAll(/\$(\d+)/g, (_, k) => typed(Number(k)))};`
  })
  const made = [...fresh].map(([id, name]) => `${maker(id, organizations)} as ${name}`)
  return {
    script: [
      `\\set customer 2 + :client_id + ${CLIENTS} * random(0, ${Math.floor(customers / CLIENTS) - 2})`,
      `select ${made.join(', ')} \\gset`,
      ...lines,
    ].join('\n'),
    variables,
  }
}

function expression(value: Param, name: string, fresh: Map<string, string>, variables: string[]): string {
  if (value === null) return 'null'
  // pgbench has no empty variables.
  if (value === '') return "''"
  const text = Array.isArray(value) ? arrayOf(value) : String(value)
  const ids = text.match(IDS)
  if (!ids) {
    if (!variables.includes(`${name}=${text}`)) variables.push(`${name}=${text}`)
    return `:${name}`
  }
  for (const id of ids) if (!fresh.has(id)) fresh.set(id, `v${fresh.size}`)
  if (ids.length === 1 && ids[0] === text) return `:${fresh.get(text)}`
  const pieces = text.split(IDS).map(literal)
  return `(${pieces.map((piece, n) => (n < ids.length ? `${piece} || :${fresh.get(ids[n]!)}::text` : piece)).join(' || ')})`
}

/** A list of texts as a PostgreSQL array. */
function arrayOf(values: (string | null)[]): string {
  return `{${values.map((value) => (value === null ? 'null' : JSON.stringify(value))).join(',')}}`
}

/** A text as an SQL literal, split after each colon before a word, which pgbench would take for a variable. */
function literal(text: string): string {
  return `'${text.replaceAll("'", "''").replaceAll(/:(?=\w)/g, ":' || '")}'`
}

function maker(id: string, organizations: number): string {
  if (id === '1') return ':customer'
  if (id === ORGANIZATION) return `'${id}' || coalesce('-' || nullif((:customer - 1) % ${organizations}, 0), '')`
  if (id.includes('-')) return 'gen_random_uuid()'
  return "replace(gen_random_uuid()::text, '-', '')"
}
