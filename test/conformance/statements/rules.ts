// The rules for statements that are routed to servers by tenant: each names its tenant, and does nothing across tenants.
import { loadModule, parseSync } from 'libpg-query'

export type Rule = 'tenant' | 'lock' | 'empty select' | 'clock in set' | 'insert beside read'

export interface Breach {
  rule: Rule
  /** The table or function. */
  what: string
}

await loadModule()

// biome-ignore lint/suspicious/noExplicitAny: the parser's tree has some hundred kinds of nodes.
type Node = any

/** A relation of a statement; only tables of tenants must be bound to a tenant. */
interface Relation {
  table: string | undefined
  bound: boolean
  /** Other relations of the scope that have the same tenant. */
  same: Set<Relation>
}

interface Scope {
  relations: Map<string, Relation>
  ctes: Set<string>
  outer: Scope | undefined
}

const TENANT_COLUMNS = new Set(['organization_id', 'project_id'])
// Their own id identifies the tenant.
const TENANTS = new Set(['organizations', 'projects'])
const NOT_STABLE = new Set(['db_clock', 'clock_timestamp', 'now', 'gen_random_uuid', 'random', 'nextval', 'safe_until'])

/** The breaches of a text, which may contain several statements. Throws if it cannot be parsed. */
export function breachesOf(text: string, tenantTables: ReadonlySet<string>): Breach[] {
  const found: Breach[] = []
  if (text.trim() === '') return []
  for (const { stmt } of parseSync(text).stmts ?? []) check(stmt, undefined, new Set(), tenantTables, found)
  return [...new Map(found.map((breach) => [`${breach.rule} ${breach.what}`, breach])).values()]
}

function check(
  node: Node,
  outer: Scope | undefined,
  ctes: Set<string>,
  tables: ReadonlySet<string>,
  found: Breach[],
): void {
  const [kind, statement] = Object.entries(node ?? {})[0] ?? []
  if (!['SelectStmt', 'InsertStmt', 'UpdateStmt', 'DeleteStmt'].includes(kind!)) return
  const { withClause, larg, rarg, selectStmt } = statement as Node
  const known = new Set(ctes)
  for (const { CommonTableExpr: cte } of withClause?.ctes ?? []) {
    // A recursive expression reads itself.
    if (withClause.recursive) known.add(cte.ctename)
    check(cte.ctequery, outer, known, tables, found)
    known.add(cte.ctename)
  }
  if (withClause) insertsBesideReads(statement as Node, tables, found)
  for (const half of [larg, rarg]) if (half) check({ SelectStmt: half }, outer, known, tables, found)
  if (selectStmt) check(selectStmt, outer, known, tables, found)
  checkScope(kind!, statement as Node, { relations: new Map(), ctes: known, outer }, tables, found)
}

function checkScope(kind: string, statement: Node, scope: Scope, tables: ReadonlySet<string>, found: Breach[]): void {
  const conditions: Node[] = [statement.whereClause]
  const add = (from: Node) => addRelations(from, scope, conditions, tables, found)
  for (const from of [...(statement.fromClause ?? []), ...(statement.usingClause ?? [])]) add(from)
  if (kind === 'UpdateStmt' || kind === 'DeleteStmt') add({ RangeVar: statement.relation })
  for (const condition of conditions.flatMap(conjuncts)) bind(condition, scope)
  spread(scope)
  const unbound = [...scope.relations.values()].filter(({ table, bound }) => table !== undefined && !bound)
  for (const { table } of unbound) {
    found.push({ rule: 'tenant', what: table! })
    if (statement.lockingClause) found.push({ rule: 'lock', what: table! })
  }
  const isPlain = kind === 'SelectStmt' && !statement.valuesLists && (statement.op ?? 'SETOP_NONE') === 'SETOP_NONE'
  if (isPlain && !statement.targetList) found.push({ rule: 'empty select', what: 'select from' })
  for (const name of functionsIn(
    kind === 'UpdateStmt' ? statement.targetList : statement.onConflictClause?.targetList,
  )) {
    if (NOT_STABLE.has(name)) found.push({ rule: 'clock in set', what: name })
  }
  const { targetList, whereClause, returningList, valuesLists, onConflictClause, havingClause, sortClause } = statement
  for (const part of [targetList, whereClause, returningList, valuesLists, onConflictClause, havingClause, sortClause])
    checkInside(part, scope, tables, found)
}

/** Checks the statements within an expression; the search does not descend into them, because each checks its own parts. */
function checkInside(node: Node, scope: Scope, tables: ReadonlySet<string>, found: Breach[]): void {
  if (node === null || typeof node !== 'object') return
  if (Array.isArray(node)) {
    for (const one of node) checkInside(one, scope, tables, found)
    return
  }
  for (const [name, value] of Object.entries(node)) {
    if (name === 'subselect') check(value, scope, scope.ctes, tables, found)
    else checkInside(value, scope, tables, found)
  }
}

function addRelations(
  from: Node,
  scope: Scope,
  conditions: Node[],
  tables: ReadonlySet<string>,
  found: Breach[],
): void {
  const add = (alias: string, table?: string) =>
    scope.relations.set(alias, { table, bound: table === undefined, same: new Set() })
  const { RangeVar: range, JoinExpr: join, RangeSubselect: sub, RangeFunction: call } = from ?? {}
  if (range) {
    const isTable = tables.has(range.relname) && !scope.ctes.has(range.relname)
    add(range.alias?.aliasname ?? range.relname, isTable ? range.relname : undefined)
  } else if (join) {
    const before = new Set(scope.relations.values())
    addRelations(join.larg, scope, conditions, tables, found)
    const left = [...scope.relations.values()].filter((one) => !before.has(one))
    addRelations(join.rarg, scope, conditions, tables, found)
    const right = [...scope.relations.values()].filter((one) => !before.has(one) && !left.includes(one))
    if (join.quals) {
      conditions.push(join.quals)
      checkInside(join.quals, scope, tables, found)
    }
    const names = (join.usingClause ?? []).map((name: Node) => name.String.sval)
    if (names.some((name: string) => TENANT_COLUMNS.has(name)))
      for (const one of left) for (const other of right) connect(one, other)
  } else if (sub) {
    check(sub.subquery, scope, scope.ctes, tables, found)
    add(sub.alias?.aliasname ?? `subquery ${scope.relations.size}`)
  } else if (call) {
    checkInside(call.functions, scope, tables, found)
    add(call.alias?.aliasname ?? `function ${scope.relations.size}`)
  }
}

/** The parts of a condition that are joined by `and`. */
function conjuncts(condition: Node): Node[] {
  const { BoolExpr: bool } = condition ?? {}
  return bool?.boolop === 'AND_EXPR' ? bool.args.flatMap(conjuncts) : condition ? [condition] : []
}

function bind(condition: Node, scope: Scope): void {
  const { A_Expr: expression, SubLink: link } = condition
  if (link?.subLinkType === 'ANY_SUBLINK') {
    for (const side of partsOf(link.testexpr)) equate(side, undefined, scope)
    return
  }
  if (expression?.name?.[0]?.String?.sval !== '=') return
  const [left, right] = [partsOf(expression.lexpr), partsOf(expression.rexpr)]
  for (const [n, side] of left.entries()) {
    // A list or an array on the right has values for each part of the left.
    const other = expression.kind === 'AEXPR_OP' ? right[n] : undefined
    equate(side, other, scope)
    if (other) equate(other, side, scope)
  }
}

const partsOf = (node: Node): Node[] => (node?.RowExpr ? node.RowExpr.args.map(bare) : [bare(node)])
const bare = (node: Node): Node => (node?.TypeCast ? bare(node.TypeCast.arg) : node)

/** Binds the tenant column on one side to the other side: a value, another relation of this scope, or an outer one. */
function equate(side: Node, other: Node, scope: Scope): void {
  for (const relation of relationsOf(side, scope)) {
    const column = other?.ColumnRef
    if (!column) {
      relation.bound = true
      continue
    }
    const alias = column.fields.length > 1 ? column.fields[0].String?.sval : undefined
    const neighbour = alias === undefined ? undefined : scope.relations.get(alias)
    if (!neighbour || neighbour.table === undefined) relation.bound = true
    else if (relationsOf(other, scope).includes(neighbour)) connect(relation, neighbour)
  }
}

/** The tables of this scope whose tenant column this is. */
function relationsOf(node: Node, scope: Scope): Relation[] {
  const fields = node?.ColumnRef?.fields
  const name = fields?.at(-1)?.String?.sval
  if (name === undefined) return []
  const alias = fields.length > 1 ? fields[0].String?.sval : undefined
  const named = alias === undefined ? [...scope.relations.values()] : [scope.relations.get(alias)]
  return named.filter((one): one is Relation => {
    if (one?.table === undefined) return false
    return TENANT_COLUMNS.has(name) || (name === 'id' && TENANTS.has(one.table))
  })
}

function connect(one: Relation, other: Relation): void {
  one.same.add(other)
  other.same.add(one)
}

/** Relations with the same tenant as a bound relation are bound as well. */
function spread({ relations }: Scope): void {
  const waiting = [...relations.values()].filter(({ bound }) => bound)
  for (let one = waiting.pop(); one; one = waiting.pop()) {
    for (const other of one.same) {
      if (other.bound) continue
      other.bound = true
      waiting.push(other)
    }
  }
}

function functionsIn(node: Node): string[] {
  if (node === null || typeof node !== 'object') return []
  const own = node.FuncCall ? [node.FuncCall.funcname.at(-1).String.sval as string] : []
  return [...own, ...Object.values(node).flatMap(functionsIn)]
}

/** On one server a statement is one snapshot. On several it is not, and may see the rows that it inserts. */
function insertsBesideReads(statement: Node, tables: ReadonlySet<string>, found: Breach[]): void {
  const parts: Node[] = [...statement.withClause.ctes, { ...statement, withClause: undefined }]
  for (const [n, part] of parts.entries()) {
    const table = part.CommonTableExpr?.ctequery?.InsertStmt?.relation?.relname
    if (table === undefined || !tables.has(table)) continue
    const others = parts.filter((_, other) => other !== n)
    if (others.some((other) => readsIn(other).includes(table))) found.push({ rule: 'insert beside read', what: table })
  }
}

/** The tables in the `from` clauses below. */
function readsIn(node: Node): string[] {
  if (node === null || typeof node !== 'object') return []
  const own = node.RangeVar ? [node.RangeVar.relname as string] : []
  return [...own, ...Object.values(node).flatMap(readsIn)]
}
