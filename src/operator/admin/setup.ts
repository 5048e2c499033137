// What a new project has, step by step, until its first charge: the checklist of a beginning.
import { Type } from '../../lib/shape/schema.ts'
import { requireProject } from './exist.ts'
import { reading } from './operation.ts'

const yes = (description: string) => Type.Boolean({ description })

const setup = reading({
  id: 'getProjectSetup',
  right: 'figures',
  command: 'project setup',
  path: '/projects/:project_id/setup',
  tag: 'State',
  summary: 'Get what a new project has and what it lacks',
  response: Type.Named('ProjectSetup', {
    project_id: Type.String({ description: 'The project.' }),
    has_records: yes('Whether it has a profile or a session.'),
    has_card: yes('Whether a customer of it has a saved card. Looks at a hundred customers.'),
    has_payment: yes('Whether one of its newest hundred transactions is outside the sandbox.'),
    has_test_payment: yes('Whether one of its newest hundred transactions is in the sandbox.'),
    endpoints: Type.Integer({ description: 'Webhook endpoints.' }),
    has_answer: yes('Whether an endpoint took an event. Looks at a hundred deliveries.'),
    merchant_accounts: Type.Integer({ description: 'Connected merchant accounts of its organization.' }),
    rates_day: Type.OrNull(
      Type.String(),
      'The newest day of the exchange rates of its organization; null if none are loaded.',
    ),
  }),
  async run({ db }, { params }) {
    const organizationId = await requireProject(db.query, params.project_id)
    const [row] = await db.query(SETUP, [params.project_id, organizationId])
    const is = (name: string) => row![name] === 't'
    return {
      project_id: params.project_id,
      has_records: is('has_records'),
      has_card: is('has_card'),
      has_payment: is('has_payment'),
      has_test_payment: is('has_test_payment'),
      endpoints: Number(row!.endpoints),
      has_answer: is('has_answer'),
      merchant_accounts: Number(row!.merchant_accounts),
      rates_day: row!.rates_day ?? null,
    }
  },
})

// Each part reads a few rows of an index: a project with millions of records is answered as quickly.
const SETUP = `
  select
    exists (select from profiles where project_id = $1) or exists (select from sessions where project_id = $1) as has_records,
    exists (
      select from (select organization_id, external_id from customers
        where project_id = $1 and profile_id is not null limit 100) c
      join report_transactions r on r.organization_id = c.organization_id and r.external_id = c.external_id
      where r.payment_method_token is not null) as has_card,
    exists (select from (select sandbox from transactions where project_id = $1 order by created_at desc, id desc limit 100) t
      where not sandbox) as has_payment,
    exists (select from (select sandbox from transactions where project_id = $1 order by created_at desc, id desc limit 100) t
      where sandbox) as has_test_payment,
    (select count(*) from webhook_endpoints where project_id = $1 and removed_at is null) as endpoints,
    exists (select from (select status from webhook_deliveries where project_id = $1 limit 100) d
      where status = 'succeeded') as has_answer,
    (select count(*) from merchant_accounts where organization_id = $2 and connected_at is not null) as merchant_accounts,
    (select max(day)::text from exchange_rates where organization_id = $2 and currency_code = 'USD') as rates_day`

export const projectSetup = [setup] as const
