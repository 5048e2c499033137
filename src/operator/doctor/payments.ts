// The doctor's checks of payments: whether providers respond, and charges whose outcome is unknown.
import type { Db } from '../../lib/pg/db.ts'
import { count } from '../../lib/text.ts'
import { adapters } from '../../payments/providers/adapters.ts'
import type { Provider, Providers } from '../../payments/providers/provider.ts'
import { type Finding, failed, ofTenant, ok, warning } from './finding.ts'

// By then the outcome has been looked up four times.
const LONG_IN_PROGRESS = '10 minutes'
// Banks take some days for a refund; after that an operator should ask the provider.
const LONG_PENDING = '10 days'

const MISMATCHES_SHOWN_FOR = '30 days'

export async function checkProviders(db: Db, providers: Providers, simulatorIsRequired: boolean): Promise<Finding[]> {
  const all = await providers.all()
  const findings = await Promise.all(
    all.map(({ organizationId, provider }) =>
      organizationId === null
        ? checkSimulator(provider, simulatorIsRequired)
        : checkAccount(organizationId, provider).then((finding) =>
            ofTenant({ organization_id: organizationId }, finding),
          ),
    ),
  )
  const rows = await db.query('select distinct psp from merchant_accounts order by psp')
  const without = rows.map(({ psp }) => psp!).filter((psp) => !all.some(({ provider }) => provider.name === psp))
  if (without.length > 0) {
    const message = `There are merchant accounts of providers that are not set up here: ${without.join(', ')}.`
    findings.push(warning('providers', message, 'Their history stays in reports; cards saved there cannot be charged.'))
  }
  return findings.length > 0 ? findings : [ok('providers', 'No payment provider is in use.')]
}

async function checkSimulator(provider: Provider, isRequired: boolean): Promise<Finding> {
  if (await provider.isReachable()) return ok('providers', 'The simulator responds.')
  const message = 'The simulator does not respond.'
  return isRequired
    ? failed('providers', message, 'Start it (tundish simulator), or correct SIMULATOR_URL.')
    : warning('providers', message, 'It runs while tundish serve runs.')
}

const CONNECT_AGAIN = 'Connect it again: tundish merchant-account connect'

/** Finds rejected credentials, a key of the other mode, and an account that may not charge. */
async function checkAccount(organizationId: string, provider: Provider): Promise<Finding> {
  const account = `merchant account ${provider.name} ${provider.merchantId} of organization ${organizationId}`
  const wrong = (message: string, fix = CONNECT_AGAIN) => failed('providers', message, fix)
  const described = await provider.describeAccount!()
  if (described.outcome !== 'described') {
    const isRejected = described.outcome === 'not_begun' && described.cause === 'credentials'
    return isRejected
      ? wrong(`The key of ${account} is rejected, or may not read the account (${described.why}).`)
      : wrong(
          `The provider of ${account} does not respond (${described.why}).`,
          'Check its status page and your network.',
        )
  }
  if (described.isSandbox !== provider.isSandbox) {
    const [is, marked] = described.isSandbox ? ['test', 'live'] : ['live', 'test']
    return wrong(`The key of ${account} is of the ${is} mode, and the account of the ${marked} mode.`)
  }
  if (provider.accountId && described.accountId !== provider.accountId)
    return wrong(
      `The key of ${account} is of ${described.accountId}, and the account was connected to ${provider.accountId}.`,
    )
  if (!described.chargesEnabled)
    return wrong(`The provider lets ${account} make no charges.`, 'See in the provider’s dashboard what it requires.')
  const lacks = described.missingPermissions.join(', ')
  if (lacks) return wrong(`The key of ${account} lacks permissions: ${lacks}.`, 'Add them to the key at the provider.')
  return ok('providers', `The ${account} can charge.`)
}

async function findSameAccounts(db: Db): Promise<Finding[]> {
  const rows = await db.query(SAME_ACCOUNTS)
  return rows.map(({ organization_id, psp, provider_account, names }) => {
    const message = `The merchant accounts ${names} of organization ${organization_id} are one account at the provider, ${psp} ${provider_account}: its payouts, the entries of its balance and its lost movements are listed under each name, and imports move payments from one name to another.`
    const fix = 'Keep one name, and disconnect the others: tundish merchant-account disconnect'
    return ofTenant({ organization_id: organization_id! }, warning('providers', message, fix))
  })
}

const SAME_ACCOUNTS = `
  select organization_id, psp, provider_account, string_agg(psp_merchant_id, ', ' order by psp_merchant_id) as names
  from merchant_accounts where credentials is not null and provider_account is not null
  group by organization_id, psp, provider_account, is_sandbox having count(*) > 1 order by 1, 2, 3`

/** Finds merchant accounts without a webhook secret or notifications, stuck erasures, and e-mail addresses used as ids. */
export async function checkAccounts(db: Db): Promise<Finding[]> {
  const [row] = await db.query(ACCOUNTS)
  const n = (column: string) => Number(row![column])
  const findings: Finding[] = []
  for (const { psp, accounts } of await db.query(UNSIGNED)) {
    const adapter = adapters[psp!]
    const whose = `${count(Number(accounts), `${adapter?.title ?? psp} merchant account`)} without a webhook secret`
    const what =
      adapter?.listsNotifications === false
        ? 'refunds made at the provider are found by "tundish reconcile" alone, and disputes never.'
        : 'refunds and disputes made at the provider are found minutes later.'
    const fix = 'Create a webhook endpoint at the provider, and set its secret: tundish merchant-account connect'
    findings.push(warning('providers', `${whose}: ${what}`, fix))
  }
  findings.push(...(await findSameAccounts(db)))
  if (n('silent') > 0) {
    const message = `${count(n('silent'), 'merchant account')} without any notification, though charges were made for more than an hour.`
    const fix =
      'Check at the provider whether its notifications reach this server. Of those that are refused, the log has the reason.'
    findings.push(failed('providers', message, fix))
  }
  if (n('erasures') > 0) {
    const message = `${count(n('erasures'), 'erasure')} at payment providers ${n('erasures') === 1 ? 'is' : 'are'} not done after an hour.`
    findings.push(failed('erasures', message, 'See why: tundish profile receipt'))
  }
  if (n('unreachable') > 0) {
    const message = `${count(n('unreachable'), 'erasure')} at payment providers found no customer there.`
    const fix = 'See the receipt (tundish profile receipt), and erase by hand what the account still has of the person.'
    findings.push(warning('erasures', message, fix))
  }
  if (n('emails') > 0) {
    const message = `At least ${count(n('emails'), 'external_id')} ${n('emails') === 1 ? 'looks like an e-mail address' : 'look like e-mail addresses'}, which no erasure removes.`
    findings.push(warning('erasures', message, 'Use ids that contain no personal data.'))
  }
  return findings
}

const UNSIGNED = `
  select psp, count(*) as accounts from merchant_accounts
  where credentials is not null and webhook_secrets is null group by psp order by psp`

// A few e-mail addresses are enough for the warning.
const ACCOUNTS = `
  select count(*) filter (where m.webhook_secrets is not null and exists (
      select from orders o where o.organization_id = m.organization_id and o.psp = m.psp
        and o.psp_merchant_id = m.psp_merchant_id and o.status = 'succeeded'
        and o.settled_at > greatest(m.connected_at, m.notified_at) + interval '1 hour')) as silent,
    (select count(*) from provider_erasures
     where next_attempt_at is not null and created_at < db_clock() - interval '1 hour') as erasures,
    (select count(*) from provider_erasures where next_attempt_at is null and done_at is null) as unreachable,
    (select count(*) from (select from customers where external_id like '%_@_%.__%' limit 1000) few) as emails
  from merchant_accounts m where m.credentials is not null`

/** Finds charges and refunds whose outcome has been unknown for too long. Those that are pending at the provider may take days. */
export async function checkCharges(db: Db): Promise<Finding[]> {
  const [row] = await db.query(
    `select count(*) filter (where pending_since is null) as unknown,
       count(*) filter (where pending_since is null and created_at < db_clock() - $1::interval) as stuck,
       ${utc('min(created_at) filter (where pending_since is null)')} as oldest,
       count(pending_since) as pending,
       count(*) filter (where pending_since < db_clock() - $2::interval) as forgotten,
       ${utc('min(pending_since)')} as pending_since
     from (select created_at, pending_since from orders where status = 'processing'
           union all select created_at, pending_since from refunds where status = 'processing') as in_progress`,
    [LONG_IN_PROGRESS, LONG_PENDING],
  )
  const unknown = Number(row!.unknown)
  const stuck = Number(row!.stuck)
  const pending = Number(row!.pending)
  const forgotten = Number(row!.forgotten)
  const since = `the oldest since ${row!.oldest}`
  const findings: Finding[] = []
  if (stuck > 0) {
    const message = `${movements(stuck, 'is', 'are')} in progress for more than ${LONG_IN_PROGRESS}, ${since}.`
    const fix = 'Check that a worker runs and the provider responds; decide a lasting case: tundish charges resolve'
    findings.push(failed('charges', message, fix))
  } else if (unknown > 0) findings.push(ok('charges', `${unknown} in progress, ${since}.`))
  if (pending > 0) {
    const message = `${movements(pending, 'is', 'are')} pending at the provider, the oldest since ${row!.pending_since}.`
    const fix = 'Ask the provider why it has not decided; see: tundish refund stuck, tundish order stuck'
    findings.push(forgotten > 0 ? warning('charges', message, fix) : ok('charges', message))
  }
  return findings.length > 0 ? findings : [ok('charges', 'No charge or refund is in progress.')]
}

const movements = (n: number, is: string, are: string) =>
  `${count(n, 'charge or refund', 'charges or refunds')} ${n === 1 ? is : are}`

const utc = (instant: string) => `to_char(${instant} at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"')`

/** Finds charges and refunds that differ at the provider from the request. */
export async function checkMismatches(db: Db): Promise<Finding[]> {
  const rows = await db.query(
    `select 'order ' || order_id as what, provider_mismatch as mismatch from orders
     where provider_mismatch is not null and coalesce(settled_at, db_clock()) > db_clock() - $1::interval
     union all
     select 'refund ' || refund_id, provider_mismatch from refunds
     where provider_mismatch is not null and coalesce(settled_at, db_clock()) > db_clock() - $1::interval
     order by 1`,
    [MISMATCHES_SHOWN_FOR],
  )
  if (rows.length === 0) return []
  const some = rows.slice(0, 3).map(({ what, mismatch }) => `${what} (${mismatch})`)
  const more = rows.length > some.length ? ', …' : ''
  const message = `${movements(rows.length, 'differs', 'differ')} at the provider from the request: ${some.join(', ')}${more}.`
  const fix = 'Compare each with the provider; one that is still in progress: tundish charges resolve'
  return [failed('charges', message, fix)]
}
