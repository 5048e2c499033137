// The OpenAPI description of the public listener, collected from the routes' own declarations.
import type { FastifyInstance } from 'fastify'
import { PUBLIC_CODES } from '../../core/records/error-codes.ts'
import { describeRoutes } from '../../lib/http/describe.ts'
import { describeWebhooks } from './webhook-events.ts'

const ABOUT = `
Tundish is the backend of web funnels that sell subscriptions. It has two APIs, both for servers only: a secret key
must never be in a browser, an app or a repository.

* The **data API** (\`/public/v1\`) reads funnels, profiles, sessions, subscriptions, products and transactions, and erases
  the personal data of profiles. It needs the project's key in the header \`Service-Secret\`, whose name is case-sensitive.
* The **billing API** (\`/{org_id}/v1\`) charges any amount to a customer's saved card, refunds charges, and reports every payment.
  It needs the organization's key in the header \`service-secret-key\`.

Amounts of the data API are integers in the currency's minor unit; amounts of the billing API are in major units.
Date-times are in UTC with six fraction digits. Errors are \`{"message": "…"}\`, a sentence for people.
The guides at \`/docs/guides\` explain how to sync, how a charge works, and how to verify webhooks.
`

/** Collects the declarations of every route registered on `listener` after this. */
export async function describePublic(listener: FastifyInstance): Promise<void> {
  await describeRoutes(listener, {
    title: 'Tundish',
    about: ABOUT,
    tags: TAGS,
    securitySchemes: {
      projectKey: {
        type: 'apiKey',
        in: 'header',
        name: 'Service-Secret',
        description: 'The secret key of a project.',
      },
      organizationKey: {
        type: 'apiKey',
        in: 'header',
        name: 'service-secret-key',
        description: 'The secret key of an organization.',
      },
    },
    errorCodes: PUBLIC_CODES,
    webhooks: describeWebhooks(),
  })
}

const TAGS = [
  { name: 'Funnels', description: 'The funnels of the project.' },
  { name: 'Experiments', description: 'Experiments that sessions took part in.' },
  { name: 'Profiles', description: 'People, and the erasure of their data.' },
  { name: 'Sessions', description: 'Visits of funnels, with their form replies.' },
  { name: 'Subscriptions', description: 'Subscriptions that people have bought.' },
  { name: 'Products', description: 'Products with their prices.' },
  { name: 'Transactions', description: 'Payments, as the data API shows them.' },
  { name: 'Records', description: 'Writing records, one by one or many at once.' },
  { name: 'Export', description: 'All changed records in one response.' },
  { name: 'Billing', description: 'Charges on a saved card, refunds, what a customer owns, the payment report.' },
  { name: 'Webhooks', description: 'Requests that an endpoint of a project receives.' },
  { name: 'Health', description: 'For load balancers and monitors.' },
]
