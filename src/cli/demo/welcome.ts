// The text that a start of the demo prints: addresses, keys, and calls to paste into a shell.
import type { App } from '../../app.ts'
import { DAY_MS } from '../../lib/days.ts'
import { FUNNELS } from './catalogue.ts'

/** Undefined when the key was revoked and there is no other. */
export interface Keys {
  project: string | undefined
  organization: string | undefined
  /** A key of the project that can only write records. */
  writer: string | undefined
}

const NO_KEY = '(none: run "tundish keys regenerate")'
const NO_WRITER = '(none: run "tundish keys create --project demo --name \'demo writer\' --scope write")'

export function welcome(
  { config, notice, simulatorUrls }: Pick<App, 'config' | 'notice' | 'simulatorUrls'>,
  { url, adminUrl }: { url: string; adminUrl: string | undefined },
  keys: Keys,
): string {
  const places = {
    'Data API': `${url}/public/v1`,
    'Billing API': `${url}/demo/v1`,
    Reference: `${url}/docs`,
    Guides: `${url}/docs/guides`,
    ...(adminUrl && { 'Operator API': `${adminUrl}/admin/v1, described at ${adminUrl}/docs` }),
    ...(simulatorUrls['stripe'] && { 'Stripe simulator': simulatorUrls['stripe']() }),
    ...(simulatorUrls['primer'] && { 'Primer simulator': simulatorUrls['primer']() }),
    Data: config.databaseUrl ? 'the database of DATABASE_URL' : config.dataDir,
  }
  const secrets = {
    'Service-Secret': keys.project ?? NO_KEY,
    'service-secret-key': keys.organization ?? NO_KEY,
    'Write key': keys.writer ?? NO_WRITER,
  }
  return [
    '',
    'Tundish is running. Ctrl-C stops it.',
    '',
    table(places),
    ...(notice ? ['', notice] : []),
    '',
    'Keys of the project and the organization "demo":',
    '',
    table(secrets),
    ...(keys.project ? ['', ...dataCalls(url, keys.project)] : []),
    ...(keys.writer ? ['', ...writingCall(url, adminUrl, keys.writer)] : []),
    ...(keys.organization ? ['', ...billingCalls(url, keys.organization)] : []),
    '',
  ].join('\n')
}

function dataCalls(url: string, key: string): string[] {
  const call = (path: string) => `curl -gs -H 'Service-Secret: ${key}' '${url}/public/v1${path}'`
  const lastWeek = new Date(Date.now() - 7 * DAY_MS).toISOString().slice(0, 10)
  return [
    'Try the data API from another terminal:',
    '',
    call('/subscriptions?limit=2'),
    '',
    call('/subscriptions?filter[status]=unpaid&limit=2'),
    '',
    call(`/profiles?filter[updated_at.from]=${lastWeek}T00:00:00Z&limit=2`),
  ]
}

/** A visit: the person, the session, and a reply. Sent again, the call changes nothing. */
function writingCall(url: string, adminUrl: string | undefined, key: string): string[] {
  const created_at = `${new Date().toISOString().slice(0, 10)}T00:00:00Z`
  const { id: funnel_id, version: funnel_version, title } = FUNNELS[0]!
  const session = { id: 'ses_first', profile_id: 'pro_first', funnel_id, funnel_version, locale: 'en', created_at }
  const element = { id: 'el_hours', type: 'SingleSelect', custom_id: 'hours' }
  const records = [
    { record: 'profile', data: { id: 'pro_first', email: 'first@example.com', created_at } },
    { record: 'session', data: session },
    { record: 'reply', data: { session_id: session.id, element, screen: { id: 'scr_3', index: 2 }, value: '7' } },
  ]
  const page = adminUrl ? `${adminUrl}/funnels/${funnel_id}?project=demo` : 'the dashboard'
  return [
    `Write a visit of the funnel “${title}” with the write key, and see it at ${page}:`,
    '',
    `curl -s -H 'Service-Secret: ${key}' -H 'Content-Type: application/json' '${url}/public/v1/records' -d '${JSON.stringify({ records })}'`,
  ]
}

function billingCalls(url: string, key: string): string[] {
  const call = (path: string, body: string) =>
    `curl -s -H 'service-secret-key: ${key}' -H 'Content-Type: application/json' '${url}/demo/v1${path}' -d ${body}`
  const charge = { external_id: 'ada', amount: '9.99', currency_code: 'USD', idempotency_key: 'first-top-up' }
  const assets = call('/my_assets', `'{"external_id":"ada"}'`)
  const order = `$(${assets} | grep -oE '"order_id":"[^"]+' | cut -d'"' -f4 | head -n 1)`
  return [
    'Charge a saved card at the simulator (run it twice: the second call charges nothing), list what the customer owns, refund it:',
    '',
    call('/payment/one_off_charge', `'${JSON.stringify(charge)}'`),
    '',
    assets,
    '',
    call('/payment/refund', `'{"external_id":"ada","order_id":"'${order}'"}'`),
    '',
    'The cards of the customers "grace" and "hedy" are charged through the adapters of Stripe and Primer, at simulators of their APIs.',
  ]
}

function table(rows: Record<string, string>): string {
  const width = Math.max(...Object.keys(rows).map((name) => name.length)) + 2
  return Object.entries(rows)
    .map(([name, value]) => `  ${name.padEnd(width)}${value}`)
    .join('\n')
}
