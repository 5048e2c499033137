// Records that the demo lacks, and the URLs of their pages.

import { FULL_ACCESS } from '../../../src/core/tenants/access.ts'
import { createOperator } from '../../../src/core/tenants/operator-keys.ts'
import { perform } from '../../../src/operator/admin/operation.ts'
import { operations } from '../../../src/operator/admin/operations.ts'
import { insert } from '../../support/data.ts'
import type { TestServer } from '../../support/server.ts'

/** Pages of one object, of which the demo has none: a charge with a refund, a person, an event, a receipt. */
export async function objectPages({ app, db }: TestServer): Promise<string[]> {
  const operator = await db.tx((query) => createOperator(query, { name: 'objects', scope: 'write' }))
  const actor = { kind: 'operator key' as const, id: operator.id, source: '127.0.0.1' }
  const call = (id: string, input: object) => {
    const operation = operations.find((one) => one.id === id)!
    return perform(operation, app, actor, { params: {}, query: {}, body: {}, ...input, access: FULL_ACCESS })
  }
  const params = { project_id: 'demo' }
  // Nothing listens there: its deliveries fail.
  const endpoint = (await call('createWebhook', { params, body: { url: 'https://127.0.0.1:9/hooks' } })) as {
    id: string
  }
  await call('testWebhook', { params: { ...params, webhook_id: endpoint.id } })
  const low = { metric: 'revenue', condition: 'below', threshold: 1000 }
  await call('putAlert', { params: { ...params, alert_id: 'low-revenue' }, body: low })
  await call('putAlertDestination', {
    params: { ...params, destination_id: 'team' },
    body: { kind: 'slack', address: 'https://127.0.0.1.nip.example/services/T0/B0/secret' },
  })
  await call('sendAlertNow', { params })
  const [made] = await db.query(
    `insert into orders (organization_id, order_id, external_id, project_id, idempotency_key, amount, currency_code, status,
       psp, psp_merchant_id, payment_method_token, source_trx_id, provider_key, created_at, settled_at)
     select organization_id, gen_random_uuid(), external_id, project_id, 'test', 10, 'USD', 'succeeded', 'simulator',
       'moonrise-eu', 'gone', gen_random_uuid(), 'test', db_clock(), db_clock()
     from customers where project_id = 'demo' and profile_id is not null order by created_at limit 1 returning order_id, external_id`,
  )
  const [person] = await db.query('select profile_id as id from customers where external_id = $1', [made!.external_id!])
  const [gone] = await db.query(
    `select profile_id as id from sessions where project_id = 'demo' order by created_at limit 1`,
  )
  await call('eraseProfile', { params: { ...params, profile_id: gone!.id! } })
  const [paid] = await db.query(
    `select subscription_id as id from transactions where project_id = 'demo' and subscription_id is not null limit 1`,
  )
  const [event] = await db.query(`select id from events where project_id = 'demo' order by created_at desc limit 1`)
  return [
    `/charges/demo/${made!.order_id}`,
    `/people/${person!.id}`,
    `/people/${gone!.id}`,
    `/subscriptions/${paid!.id}`,
    `/erasures/${gone!.id}`,
    `/webhooks/events/${event!.id}`,
  ]
}

/** A project with the longest texts that are common; returns its pages. */
export async function longTexts({ db, project: open }: TestServer): Promise<string[]> {
  const { id, organizationId } = await open()
  const name = 'Donaudampfschifffahrtsgesellschaftskapitänsmützenverkauf'
  const profile = `profile_${'0123456789'.repeat(8)}`
  await db.query('update organizations set name = $2 where id = $1', [organizationId, `${name} mbH & Co. KG`])
  await db.query('update projects set name = $2 where id = $1', [id, `مشروع ${name}`])
  await insert(
    db,
    { id, organizationId },
    {
      funnels: [{ id: 'long', title: name }],
      profiles: [{ id: profile, email: `${name.toLowerCase()}+newsletter@${'sub.'.repeat(20)}example.com` }],
      sessions: [
        { id: 'session', profile_id: profile, funnel_id: 'long', origin: `https://example.com/${'path/'.repeat(40)}` },
      ],
      replies: [
        { session_id: 'session', element_custom_id: 'question_'.repeat(11), value: JSON.stringify('x'.repeat(400)) },
      ],
      products: [{ id: 'product', name: `${name} by the year` }],
      subscriptions: [{ id: 'sub', profile_id: profile, price: 999_999_999_999, session_id: 'session' }],
    },
  )
  const lists =
    'funnels revenue subscriptions charges refunds finance alerts webhooks projects keys merchant-accounts settings'
  const paths = ['', ...lists.split(' '), `people/${profile}`].map((path) => `/${path}?project=${id}`)
  const screen = `/funnels/long/screens/screen-1?project=${id}`
  return [...paths, screen, `/revenue?project=${id}&funnel=long`, `/hours?project=all:${organizationId}`]
}
