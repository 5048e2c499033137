// Operations that start, show and stop imports of Stripe accounts. The servers run the imports.
import { requireIdle } from '../../data/ingest/stripe/hold.ts'
import { readFields } from '../../data/ingest/stripe/names.ts'
import { reportOf } from '../../data/ingest/stripe/report.ts'
import { FIRST_STEP } from '../../data/ingest/stripe/run.ts'
import { hasAccount } from '../../data/ingest/stripe/start.ts'
import { beginState, findState, type ImportState, listStates, stopState } from '../../data/ingest/stripe/state.ts'
import { ApiError } from '../../lib/errors.ts'
import { type Schema, Type } from '../../lib/shape/schema.ts'
import { shorten } from '../../lib/text.ts'
import { readInstant, TimeError } from '../../lib/time.ts'
import { notFound, requireProject } from './exist.ts'
import { change, type Input, reading } from './operation.ts'

const PATH = '/projects/:project_id/stripe-imports'
const ONE = `${PATH}/:psp_merchant_id` as const
const TAG = 'Import'

const time = (description: string) => Type.String({ format: 'date-time', description })
const orNull = (description: string): Schema<string | null> => ({ type: ['string', 'null'], description })

const progress = {
  psp_merchant_id: Type.String({ description: 'The merchant account at Stripe.' }),
  status: Type.String({
    enum: ['waiting', 'running', 'following', 'done', 'failed', 'stopped'],
    description: '`waiting` for a server; `following` changes at Stripe, after everything was read.',
  }),
  step: Type.String({ description: 'The list that is being read; `events` after the last one.' }),
  read: Type.Integer({ minimum: 0, description: 'Objects read at Stripe.' }),
  rejected: Type.Integer({ minimum: 0, description: 'Objects that could not be imported.' }),
  since: orNull('Only objects created at or after this time are read.'),
  external_id_key: orNull('The metadata key of a customer at Stripe that holds your id of the customer.'),
  follow: Type.Boolean({ description: 'Whether changes are followed after everything was read.' }),
  error: orNull('Why it failed.'),
  started_at: time('When it was started.'),
  updated_at: time('When the import last stored its progress.'),
  finished_at: orNull('When everything was read.'),
}

const figure = Type.Named('StripeFigure', {
  kind: Type.String({ description: 'Customers, payments, refunds and so on.' }),
  month: orNull('Year and month.'),
  currency: orNull('ISO 4217 code.'),
  stripe_count: Type.Integer({ description: 'Number of objects at Stripe.' }),
  stripe_sum: orNull('Sum of their amounts at Stripe, in major units.'),
  here_count: Type.Integer({ description: 'Number of them in Tundish.' }),
  here_sum: orNull('Sum of their amounts in Tundish.'),
})

const shortResponse = Type.Named('StripeImport', progress)
const longResponse = Type.Named('StripeImportDetail', {
  ...progress,
  rejects: Type.Array(Type.String(), {
    description: 'The first hundred objects that were rejected, or lost a text that is too long, with the reason.',
  }),
  differences: Type.Array(figure, { description: 'The figures that differ.' }),
  figures: Type.Array(figure, { description: 'Objects at Stripe, and those of them in Tundish.' }),
})

const target = ({ params }: Input) => `project ${params.project_id}`

export const stripeImports = [
  change({
    id: 'startStripeImport',
    right: 'imports',
    // The account has the people and payments of all projects of the organization.
    ofOrganization: true,
    command: 'stripe-import start',
    method: 'POST',
    path: ONE,
    tag: TAG,
    summary: 'Import a Stripe account',
    description:
      'The account has the payments of the whole organization, which the operator must reach. Runs in the background on any server, and continues after a restart. An import that was interrupted or failed continues where it stopped, unless the options differ.',
    body: Type.Named('NewStripeImport', {
      since: Type.Optional(time('Only objects created at or after this time.')),
      external_id_key: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 40,
          description: 'The metadata key of a customer at Stripe that holds your id of the customer.',
        }),
      ),
      metadata: Type.Optional(
        Type.Array(Type.String({ minLength: 3, maxLength: 80 }), {
          maxItems: 5,
          description: 'Other fields of metadata that name records, such as `profile=user_id`.',
        }),
      ),
      match_email: Type.Optional(
        Type.Boolean({
          default: false,
          description: 'Takes a customer as the only profile with the same e-mail address, too.',
        }),
      ),
      follow: Type.Optional(
        Type.Boolean({ default: false, description: 'Follows changes at Stripe after everything was read.' }),
      ),
    }),
    response: shortResponse,
    async change(query, input) {
      const name = await nameOf(query, input)
      if (!(await hasAccount(query, name))) throw notFound('connected merchant account at Stripe', name.merchantId)
      const given = input.body
      const options = {
        since: given.since === undefined ? null : readSince(given.since),
        external_id_key: given.external_id_key ?? null,
        metadata: given.metadata ? readFields(given.metadata) : null,
        match_email: given.match_email ?? false,
        follow: given.follow ?? false,
      }
      await requireIdle(query, name)
      const state = await beginState(query, name, options, { background: true, firstStep: FIRST_STEP })
      const after = { merchant_account: name.merchantId, ...options }
      return { entry: { action: 'stripe_import.begun', target: target(input), after }, result: shown(state) }
    },
  }),
  reading({
    id: 'listStripeImports',
    right: 'setup',
    command: 'stripe-import list',
    path: PATH,
    tag: TAG,
    summary: 'List the imports of Stripe accounts',
    response: Type.Object({ data: Type.Array(shortResponse) }, { title: 'StripeImportList' }),
    async run({ db }, { params }) {
      return { data: (await listStates(db.query, params.project_id)).map(shown) }
    },
  }),
  reading({
    id: 'getStripeImport',
    right: 'setup',
    command: 'stripe-import show',
    path: ONE,
    tag: TAG,
    summary: 'Show an import of a Stripe account with its figures',
    description: 'Numbers and sums by month and currency, at Stripe and in Tundish.',
    response: longResponse,
    async run({ db }, input) {
      const name = await nameOf(db.query, input)
      const state = await findState(db.query, name)
      if (!state) throw notFound('import of the merchant account', name.merchantId)
      const { rejects, differences, figures } = reportOf(state.tally)
      return { ...shown(state), rejects, differences, figures }
    },
  }),
  change({
    id: 'stopStripeImport',
    right: 'imports',
    command: 'stripe-import stop',
    method: 'DELETE',
    path: ONE,
    tag: TAG,
    summary: 'Stop an import of a Stripe account',
    description:
      'Imported records stay. An import that is started again with the same options continues where it stopped.',
    response: Type.Object(
      { stopped: Type.Boolean({ description: 'False if it was not running.' }) },
      { title: 'StripeImportStopped' },
    ),
    async change(query, input) {
      const name = await nameOf(query, input)
      if (!(await findState(query, name))) throw notFound('import of the merchant account', name.merchantId)
      const stopped = await stopState(query, name)
      const after = { merchant_account: name.merchantId, stopped }
      return { entry: { action: 'stripe_import.stopped', target: target(input), after }, result: { stopped } }
    },
  }),
] as const

async function nameOf(query: Parameters<typeof requireProject>[0], { params }: Input<typeof ONE>) {
  const { project_id, psp_merchant_id } = params
  return { organizationId: await requireProject(query, project_id), projectId: project_id, merchantId: psp_merchant_id }
}

function readSince(given: string): string {
  try {
    return readInstant(given)
  } catch (error) {
    throw error instanceof TimeError
      ? new ApiError(400, 'invalid_property', `since ${error.message}, got "${shorten(given, 64)}".`)
      : error
  }
}

function shown({ merchantId, status, step, options, tally, error, ...state }: ImportState): object {
  const { since = null, external_id_key = null, follow = false } = options
  return {
    psp_merchant_id: merchantId,
    status,
    step,
    read: tally.read,
    rejected: tally.rejected,
    since,
    external_id_key,
    follow,
    error,
    started_at: state.startedAt,
    updated_at: state.updatedAt,
    finished_at: state.finishedAt,
  }
}
