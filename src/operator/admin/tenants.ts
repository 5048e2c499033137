// Organizations with their rules, and their projects.

import { isNamed } from '../../core/tenants/listing.ts'
import {
  checkMaxAmounts,
  checkTenant,
  createOrganization,
  createProject,
  type EraseAtProvider,
  setOrganization,
  within,
} from '../../core/tenants/tenants.ts'
import { DECLARED_ONLY } from '../../lib/http/rule-phrases.ts'
import { JsonNumber } from '../../lib/json/read.ts'
import type { Query } from '../../lib/pg/types.ts'
import { type Schema, Type } from '../../lib/shape/schema.ts'
import { boolean, instant, json, shape, text } from '../../lib/shape/shape.ts'
import { equals, list } from './list.ts'
import { nameField, newId } from './names.ts'
import { change, reading } from './operation.ts'

/** In the form that `org set --rate-limit` takes. */
const rateLimit = (table: string) =>
  text(
    'Requests a second with each key, and how many at once, such as `200/1000`; `off` for no limit; `default` for the setting RATE_LIMIT.',
    {
      sql: `case when ${table}.rate_limit is null then 'default' when ${table}.rate_limit = 0 then 'off' else ${table}.rate_limit || '/' || ${table}.rate_limit_burst end`,
      example: 'default',
    },
  )

const organization = shape('Organization', 'o', {
  id: text('Identifier.', { example: 'acme' }),
  name: text('Display name.', { example: 'Acme Inc.' }),
  created_at: instant('When it was created.'),
  rate_limit: rateLimit('o'),
  one_off_charge_enabled: boolean('Whether custom charges are allowed.'),
  erase_at_provider: text('Whether an erasure reaches the payment provider: `off`, `on` or `delete`.', {
    enum: ['off', 'on', 'delete'],
    example: 'off',
  }),
  one_off_charge_max_amount: json('Largest amount of a charge in major units, by currency; `*` is for all others.', {
    schema: { type: 'object', additionalProperties: { type: 'string' } } as Schema<Record<string, string>>,
    example: { '*': '1000', JPY: '50000' },
  }),
})

const project = shape('Project', 'p', {
  id: text('Identifier.', { example: 'shop' }),
  organization_id: text('The organization it belongs to.', { example: 'acme' }),
  name: text('Display name.', { example: 'Web shop' }),
  created_at: instant('When it was created.'),
  rate_limit: rateLimit('p'),
  write_payments: boolean('Whether its keys may write payments, customers and merchant accounts.', {
    sql: 'p.write_payments',
  }),
  time_zone: text('Time zone of the days, weeks and months of its figures, pages and exports.', { example: 'UTC' }),
  reporting_currency: text('Currency that its figures convert amounts to.', { example: 'USD' }),
})

const made = (what: 'organization' | 'project') => ({
  id: Type.String({ description: `Identifier of the ${what}.` }),
  secret_key: Type.String({ description: 'Its first secret key, shown only now.' }),
})
const organizationMade = Type.Named('OrganizationMade', made('organization'))
const projectMade = Type.Named('ProjectMade', {
  ...made('project'),
  webhook_secret: Type.String({ description: 'The same key in the form that webhook libraries take.' }),
})

const name = Type.Optional(nameField('Display name.'))

const FIND_ORGANIZATION = {
  name: 'find organization',
  text: `select ${organization.columns} from organizations o where o.id = $1`,
}
const FIND_PROJECT = { name: 'find project', text: `select ${project.columns} from projects p where p.id = $1` }

const getOrganization = reading({
  id: 'getOrganization',
  right: 'figures',
  narrows: true,
  command: 'org show',
  path: '/organizations/:organization_id',
  tag: 'Tenants',
  summary: 'Get an organization with its settings',
  response: organization.schema,
  async run({ db }, { params }) {
    const [row] = await db.read(FIND_ORGANIZATION, [params.organization_id])
    return organization.one(row!)
  },
})

const getProject = reading({
  id: 'getProject',
  right: 'figures',
  command: 'project show',
  path: '/projects/:project_id',
  tag: 'Tenants',
  summary: 'Get a project',
  response: project.schema,
  async run({ db }, { params }) {
    const [row] = await db.read(FIND_PROJECT, [params.project_id])
    return project.one(row!)
  },
})

const postOrganization = change({
  id: 'createOrganization',
  right: 'manage',
  command: 'org create',
  method: 'POST',
  path: '/organizations',
  tag: 'Tenants',
  summary: 'Create an organization with its first key',
  body: Type.Named('NewOrganization', { id: newId('Id of the organization.'), name }),
  response: organizationMade,
  async change(query, { body }, { seal }) {
    const result = await createOrganization(within(query), seal, body)
    return { entry: { action: 'organization.created', target: `organization ${body.id}`, after: body }, result }
  },
})

const postProject = change({
  id: 'createProject',
  right: 'manage',
  command: 'project create',
  method: 'POST',
  path: '/organizations/:organization_id/projects',
  tag: 'Tenants',
  summary: 'Create a project with its first key',
  body: Type.Named('NewProject', { id: newId('Id of the project.'), name }),
  response: projectMade,
  checkInput: ({ body }) => checkTenant('project', body),
  async change(query, { params, body }, { seal }) {
    const given = { ...body, organization: params.organization_id }
    const result = await createProject(within(query), seal, given)
    return { entry: { action: 'project.created', target: `project ${given.id}`, after: given }, result }
  },
})

// Readable by `readAmount`; the number of decimals that the currency allows is not described.
const LIMIT = '^[0-9]{1,15}([.][0-9]{1,9})?$'
const limit = Type.Union(
  [Type.Number({ [DECLARED_ONLY]: { minimum: 0 } }), Type.String({ [DECLARED_ONLY]: { pattern: LIMIT } })],
  { description: 'An amount in major units.' },
)

const patchOrganization = change({
  id: 'setOrganization',
  right: 'manage',
  command: 'org set',
  method: 'PATCH',
  path: '/organizations/:organization_id',
  tag: 'Tenants',
  summary: 'Change the settings of an organization',
  body: Type.Named('OrganizationSettings', {
    one_off_charge_enabled: Type.Optional(Type.Boolean({ description: 'Whether custom charges are allowed.' })),
    erase_at_provider: Type.Optional(
      Type.String({
        enum: ['off', 'on', 'delete'],
        description:
          'Whether an erasure reaches the payment provider: `on` detaches cards and empties the customer there, `delete` deletes it.',
      }),
    ),
    one_off_charge_max_amount: Type.Optional(
      Type.Record(limit, {
        description: 'Largest amounts by currency, `*` for all others; currencies left out stay as they are.',
        [DECLARED_ONLY]: { propertyNames: { pattern: '^([*]|[A-Za-z]{3})$' } },
      }),
    ),
  }),
  response: Type.Object({}, { title: 'OrganizationRules' }),
  checkInput: ({ body, exact = body }) => checkMaxAmounts(maxAmountsOf(exact)),
  async change(query, { params, body, exact = body }) {
    const { organization_id } = params
    const given = exact as { one_off_charge_enabled?: boolean; erase_at_provider?: EraseAtProvider }
    const before = await settingsOf(query, organization_id)
    const result = await setOrganization(within(query), organization_id, {
      enabled: given.one_off_charge_enabled,
      eraseAtProvider: given.erase_at_provider,
      maxAmounts: maxAmountsOf(exact),
    })
    const { id: _id, ...after } = result
    return { entry: { action: 'organization.set', target: `organization ${organization_id}`, before, after }, result }
  },
})

/** The maxima as texts: `500`, or `JPY=50000`. */
function maxAmountsOf({ one_off_charge_max_amount = {} }: Record<string, unknown>): string[] {
  return Object.entries(one_off_charge_max_amount as Record<string, unknown>).map(([currency, amount]) =>
    currency === '*' ? textOf(amount) : `${currency}=${textOf(amount)}`,
  )
}

/** The digits of an amount as they were sent. */
const textOf = (amount: unknown) => (amount instanceof JsonNumber ? amount.text : String(amount))

/** The rules for custom charges, locked. */
async function settingsOf(query: Query, id: string) {
  const [row] = await query(
    `select one_off_charge_enabled, one_off_charge_max_amount, erase_at_provider from organizations
     where id = $1 for no key update`,
    [id],
  )
  return {
    one_off_charge_enabled: row!.one_off_charge_enabled === 't',
    erase_at_provider: row!.erase_at_provider as EraseAtProvider,
    one_off_charge_max_amount: JSON.parse(row!.one_off_charge_max_amount!) as object,
  }
}

const named = (table: string) => ({
  schema: Type.String({
    description: 'Only those with this text in their id or name, case-insensitive.',
    maxLength: 100,
  }),
  where: (value: string) => isNamed(table, value),
})

export const tenants = [
  list({
    id: 'listOrganizations',
    right: 'figures',
    command: 'org list',
    path: '/organizations',
    tag: 'Tenants',
    summary: 'List organizations',
    shape: organization,
    reach: { organization: 'o.id', projectsOf: 'o.id' },
    from: 'organizations o',
    at: 'o.created_at',
    key: 'o.id',
    filters: { search: named('o') },
  }),
  postOrganization,
  getOrganization,
  patchOrganization,
  list({
    id: 'listProjects',
    right: 'figures',
    command: 'project list',
    path: '/projects',
    tag: 'Tenants',
    summary: 'List projects',
    shape: project,
    reach: { organization: 'p.organization_id', project: 'p.id' },
    from: 'projects p',
    at: 'p.created_at',
    key: 'p.id',
    filters: {
      organization_id: equals('p.organization_id', 'Only those of this organization.'),
      search: named('p'),
    },
  }),
  postProject,
  getProject,
] as const
