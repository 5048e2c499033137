// The payment report: every movement of money whose outcome is known, walked from one instant to the next.
import type { FastifyInstance } from 'fastify'
import { weightOf } from '../../core/lists/page.ts'
import { limited } from '../../core/lists/statements.ts'
import { reportTransaction } from '../../core/records/payment.ts'
import { ApiError } from '../../lib/errors.ts'
import { sendJson } from '../../lib/http/send-json.ts'
import { JsonNumber, type JsonObject, type JsonValue } from '../../lib/json/read.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Param, Statement } from '../../lib/pg/types.ts'
import { Type } from '../../lib/shape/schema.ts'
import { shorten } from '../../lib/text.ts'
import { readInstant } from '../../lib/time.ts'
import { uuidIn } from './body.ts'
import { describe, lineOf, ok, type Post } from './route.ts'

const reportIn = Type.Named('TransactionReportIn', {
  last_transaction_date: Type.String({
    format: 'date-time',
    description: 'Only rows with a later `trx_created_at`. Begin with any early date, then pass that of the last row.',
    examples: ['2026-01-31T23:59:59.123456Z'],
  }),
  subs_id: Type.Optional(uuidIn('Only rows with this `meta_subs_id`.', { nullable: true })),
  order_id: Type.Optional(uuidIn('Only rows of this order.', { nullable: true })),
  oneoff_id: Type.Optional(uuidIn('Only rows with this `meta_oneoff_id`.', { nullable: true })),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 500, default: 100, description: 'Maximum number of rows.' }),
  ),
})

const reportOut = Type.Object(
  { transactions: Type.Array(reportTransaction.schema, { description: 'Oldest first.' }) },
  { title: 'TransactionReport' },
)

interface ReportRequest {
  last_transaction_date: string
  subs_id?: string | null
  order_id?: string | null
  oneoff_id?: string | null
  limit?: number
}

const DEFAULT_LIMIT = 100
const limitOf = ({ limit = DEFAULT_LIMIT }: ReportRequest) => limit

export function transactionReport(app: FastifyInstance, { db }: { db: Db }): void {
  const schema = {
    ...describe({
      operationId: 'reportTransactions',
      summary: 'Report payment transactions',
      description:
        'Oldest first. If you pass the `trx_created_at` of the last row as the next `last_transaction_date`, you get every row exactly once, even while others charge.',
    }),
    body: reportIn,
    ...ok('The next rows.', reportOut),
  }
  app.post<Post<ReportRequest>>(
    '/transaction_report',
    { schema, config: { scope: 'report' } },
    async ({ organizationId, body, exactBody }, reply) => {
      checkLimit((exactBody as JsonObject).limit)
      const list = reportTransaction.beginList('{"transactions":[')
      const asked = read(organizationId, body)
      await db.fair(lineOf(organizationId), weightOf(limitOf(body)), () => db.read(...asked, list.add))
      return sendJson(reply, list.end(']}'))
    },
  )
}

const FILTERS = { subs_id: 'meta_subs_id', order_id: 'order_id', oneoff_id: 'meta_oneoff_id' } as const
type Filter = keyof typeof FILTERS

/** One statement for each set of filters, so that each walks the index that fits. */
function read(organizationId: string, request: ReportRequest): [Statement, Param[]] {
  const limit = limitOf(request)
  const params: Param[] = [organizationId, readInstant(request.last_transaction_date)]
  const given = (Object.keys(FILTERS) as Filter[]).filter((name) => request[name] != null)
  const conditions = given.map((name) => conditionsOf(name, request[name]!, params))
  const text = (most: number) => `
    select ${reportTransaction.columns} from (${walks(conditions, most)}) r order by r.trx_created_at limit ${most}`
  return [limited(['report', ...given].join(' '), limit, limit, text), params]
}

/** A filter's conditions, one of which holds: a row of ours has its UUID in lower case, an imported one keeps it as it came. */
function conditionsOf(name: Filter, uuid: string, params: Param[]): string[] {
  const forms = name === 'order_id' ? [uuid] : [uuid.toLowerCase(), uuid.toUpperCase(), uuid]
  // Of a form that is there twice one is null, which nothing equals: the statement stays the same, and no row comes twice.
  const distinct = forms.map((form, n) => (forms.indexOf(form) === n ? form : null))
  return distinct.map((form) => ` and r.${FILTERS[name]} = $${params.push(form)}`)
}

/** A walk in the order of an index for each way to meet all filters. With `= any` PostgreSQL would read and sort all rows. */
function walks(filters: string[][], most: number): string {
  let ways = ['']
  for (const conditions of filters) ways = ways.flatMap((way) => conditions.map((condition) => way + condition))
  return ways
    .map(
      (way) => `(select r.* from report_transactions r where r.organization_id = $1 and r.trx_created_at > $2${way}
        order by r.trx_created_at limit ${most})`,
    )
    .join(' union all ')
}

/** As a double, a fraction of many digits is a whole number, and 1e2 is 100. */
function checkLimit(limit: JsonValue | undefined): void {
  if (!(limit instanceof JsonNumber) || /^[0-9]+\.0+$/.test(limit.text)) return
  const got = shorten(limit.text, 64)
  throw new ApiError(400, 'invalid_property', `limit must be a whole number without an exponent, got ${got}.`)
}
