// The routes of credits: spend, hold, capture, release, grant, adjust, balances and entries.
import type { FastifyContextConfig, FastifyInstance } from 'fastify'
import { weightOf } from '../../../core/lists/page.ts'
import { creditEntry } from '../../../core/records/credit-entry.ts'
import { ApiError } from '../../../lib/errors.ts'
import { sendJson } from '../../../lib/http/send-json.ts'
import type { JsonObject } from '../../../lib/json/read.ts'
import type { Db } from '../../../lib/pg/db.ts'
import { type Schema, Type } from '../../../lib/shape/schema.ts'
import { describe, lineOf, ok, type Post } from '../route.ts'
import { jsonCredits } from './amount.ts'
import { amount, balanceIn, balancesOf, balancesOut } from './balance.ts'
import { call, type Reply } from './calls.ts'
import { type EntriesRequest, entriesIn, entriesOut, entriesStatement, limitOf } from './entries.ts'
import { askOf, bodies, type Operation, type Owner } from './requests.ts'

const id = (description: string) => Type.String({ format: 'uuid', description })

const sums = {
  balance: amount('The balance after it.', 90),
  held: amount('What is held.', 0),
  available: amount('What can be spent or held.', 90),
  idempotent_replay: Type.Boolean({
    description: 'Whether this is the response to an earlier request with the same key. This request did nothing.',
  }),
}

const ENTRY = { entry_id: id('The entry of the ledger.') }
const HOLD = { hold_id: id('The hold.') }
const out = (title: string, ids: object) => Type.Object({ ...ids, ...sums }, { title, additionalProperties: false })

const ROUTES: Record<Operation, { summary: string; description: string; response: Schema }> = {
  spend: {
    summary: 'Spend credits',
    description:
      'Spends a customer’s credits, at most once for each `idempotency_key`; what expires first is used first. Send the same key with every retry.',
    response: out('CreditsSpendOut', ENTRY),
  },
  hold: {
    summary: 'Hold credits',
    description: 'Reserves credits for a use whose amount is not known yet. Capture or release the hold.',
    response: out('CreditsHoldOut', HOLD),
  },
  capture: {
    summary: 'Capture a hold',
    description: 'Spends what was used of a hold, and releases the rest.',
    response: out('CreditsCaptureOut', { ...ENTRY, ...HOLD }),
  },
  release: {
    summary: 'Release a hold',
    description: 'Ends a hold without spending anything.',
    response: out('CreditsReleaseOut', HOLD),
  },
  grant: {
    summary: 'Grant credits',
    description: 'Adds credits to a customer’s account. A debt is paid first.',
    response: out('CreditsGrantOut', { ...ENTRY, grant_id: id('The grant.') }),
  },
  adjust: {
    summary: 'Correct a balance',
    description: 'Adds or takes credits for a reason. It takes at most what is available.',
    response: out('CreditsAdjustOut', ENTRY),
  },
}

/** The schema of the response to a request. */
export const responseOf = (operation: Operation): Schema => ROUTES[operation].response

/** Mounts the routes of credits. */
export function credits(app: FastifyInstance, { db }: { db: Db }): void {
  for (const operation of Object.keys(ROUTES) as Operation[]) mount(app, db, operation)
  balances(app, db)
  entries(app, db)
}

// A scoped key may use a customer's credits. To make or correct them needs the full key.
const NEEDS_FULL_KEY = new Set<Operation>(['grant', 'adjust'])

const coded = ['idempotency_key_reused', 'insufficient_credits']

function mount(app: FastifyInstance, db: Db, operation: Operation): void {
  const { summary, description, response } = ROUTES[operation]
  const schema = {
    ...describe({ operationId: `${operation}Credits`, summary, description }),
    body: bodies[operation],
    ...ok('What was done.', response, {
      coded,
      problem: { title: 'CreditsProblem', ...refusalSums },
    }),
  }
  const config: FastifyContextConfig = NEEDS_FULL_KEY.has(operation) ? {} : { scope: 'charge' }
  app.post(`/credits/${operation}`, { schema, config }, async ({ exactBody, organizationId }) => {
    const given = exactBody as JsonObject
    const owner = typeof given.hold_id === 'string' ? await ownerOf(db, organizationId, given.hold_id) : undefined
    return bodyOf(operation, await call(db, askOf(operation, organizationId, given, owner)))
  })
}

const refusalSums = {
  properties: {
    balance: Type.Optional(amount('The balance, if there is not enough.', 5)),
    held: Type.Optional(amount('What is held.', 0)),
    available: Type.Optional(amount('What can be spent or held.', 5)),
  },
}

/** The response to a request. */
export function bodyOf(operation: Operation, reply: Reply) {
  const { entryId, holdId, grantId, balance, held, isReplay } = reply
  return {
    ...(operation !== 'hold' && operation !== 'release' && { entry_id: entryId }),
    ...(holdId !== null && { hold_id: holdId }),
    ...(operation === 'grant' && { grant_id: grantId }),
    balance: jsonCredits(balance),
    held: jsonCredits(held),
    available: jsonCredits(balance - held),
    idempotent_replay: isReplay,
  }
}

/** Whose a hold is, which never changes. */
async function ownerOf(db: Db, organizationId: string, holdId: string): Promise<Owner> {
  const [found] = await db.read(FIND_HOLD, [organizationId, holdId])
  if (!found) throw new ApiError(400, 'unknown_hold', 'The organization has no such hold.')
  return { externalId: found.text(0)!, unit: found.text(1)! }
}

const FIND_HOLD = {
  name: 'find credit hold',
  text: 'select external_id, unit from credit_holds where organization_id = $1 and hold_id = $2',
}

const READ_WEIGHT = 1

function balances(app: FastifyInstance, db: Db): void {
  const schema = {
    ...describe({
      operationId: 'listCreditBalances',
      summary: 'Show a customer’s balances',
      description: 'What has expired is not counted. For an unknown customer the list is empty.',
    }),
    body: balanceIn,
    ...ok('The balances.', balancesOut),
  }
  app.post<Post<{ external_id: string }>>(
    '/credits/balance',
    { schema, config: { scope: 'report' } },
    async ({ body, organizationId }) => ({
      balances: await db.fair(lineOf(organizationId), READ_WEIGHT, () =>
        balancesOf(db.query, organizationId, body.external_id),
      ),
    }),
  )
}

function entries(app: FastifyInstance, db: Db): void {
  const schema = {
    ...describe({
      operationId: 'listCreditEntries',
      summary: 'List entries of the ledger',
      description:
        'Oldest first. If you pass the `created_at` of the last entry as the next `after`, you get every entry exactly once, even while others write.',
    }),
    body: entriesIn,
    ...ok('The next entries.', entriesOut),
  }
  app.post<Post<EntriesRequest>>(
    '/credits/entries',
    { schema, config: { scope: 'report' } },
    async ({ body, organizationId }, reply) => {
      const list = creditEntry.beginList('{"entries":[')
      const asked = entriesStatement(organizationId, body)
      await db.fair(lineOf(organizationId), weightOf(limitOf(body)), () => db.read(...asked, list.add))
      return sendJson(reply, list.end(']}'))
    },
  )
}
