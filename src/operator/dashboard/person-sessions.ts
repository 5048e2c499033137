// Sessions of people who signed in at the identity provider, which confirms them every few minutes: who is removed there is out here.
import type { App } from '../../app.ts'
import type { Access } from '../../core/tenants/access.ts'
import { hashKey } from '../../core/tenants/key-text.ts'
import { tryLater } from '../../lib/errors.ts'
import { type IdentityProvider, isRefused, type Person, type Refused } from './identity-provider.ts'
import { SESSION_HOURS, type Session } from './sessions.ts'

// With what a page takes, a person who is removed has no session after a quarter of an hour at the most.
const CONFIRM_AFTER_S = 5 * 60
const CONFIRMED_FOR_S = 14 * 60
// Longer than the provider has for its responses.
const CHECK_LEASE_S = 45
const POLL_MS = 100

type Parts = Pick<App, 'db' | 'seal' | 'log' | 'clock'>

/**
 * Starts the session of this token for the person whom `finish` returns. A browser may come back from the provider twice at once, and a
 * provider accepts a code once, and takes back what it gave for a code that comes again. So one caller of all processes finishes the
 * sign-in, and the others wait for it: `joined` if the session has begun, `ended` if it has not, or too long ago.
 */
export async function beginPersonSession(
  { db, seal, clock }: Parts,
  token: string,
  finish: () => Promise<Person | Refused>,
): Promise<Person | Refused | 'joined' | 'ended'> {
  const hash = hashKey(token)
  await db.query(`delete from people_sessions where expires_at < db_clock() - interval '1 hour'`)
  const [claimed] = await db.query(CLAIM, [hash, CHECK_LEASE_S])
  if (!claimed) return waitForSession({ db, clock }, hash)
  let result: Person | Refused | undefined
  try {
    result = await finish()
  } finally {
    if (!result || isRefused(result)) await db.query('delete from people_sessions where hash = $1', [hash])
  }
  if (isRefused(result)) return result
  const { subject, name, access } = result
  await db.query(BEGIN, [hash, subject, name, JSON.stringify(access), sealed(seal, hash, result), SESSION_HOURS])
  return result
}

// A session that has not begun has expired, so that its token opens nothing.
const CLAIM = {
  name: 'claim session of person',
  text: `
    insert into people_sessions (hash, subject, name, access, tokens, created_at, expires_at, checked_at, checking_until)
    select $1, '', '', '{}', '', at, at, at, at + make_interval(secs => $2) from (select db_clock() as at) now
    on conflict do nothing returning 1`,
}

const BEGIN = {
  name: 'begin session of person',
  text: `
    update people_sessions set subject = $2, name = $3, access = $4, tokens = $5, checked_at = at, checking_until = null,
      expires_at = at + make_interval(hours => $6)
    from (select db_clock() as at) now where hash = $1`,
}

async function waitForSession({ db, clock }: Pick<Parts, 'db' | 'clock'>, hash: Buffer): Promise<'joined' | 'ended'> {
  for (;;) {
    const [row] = await db.query(
      `select expires_at > db_clock() and created_at > db_clock() - interval '1 minute' as has_begun,
         expires_at <= db_clock() and checking_until > db_clock() as is_claimed
       from people_sessions where hash = $1`,
      [hash],
    )
    if (row?.is_claimed !== 't') return row?.has_begun === 't' ? 'joined' : 'ended'
    await clock.sleep(POLL_MS)
  }
}

interface Stored {
  subject: string
  name: string
  access: Access
  ageS: number
  checkedAt: string
}

/** The session of a token, confirmed at the provider if the last time is too long ago. Throws a 503 if it cannot be. */
export async function findPersonSession(
  parts: Parts,
  provider: IdentityProvider,
  token: string,
): Promise<Session | undefined> {
  const hash = hashKey(token)
  for (;;) {
    const stored = await read(parts, hash)
    if (!stored) return undefined
    if (stored.ageS < CONFIRM_AFTER_S || (stored.ageS < CONFIRMED_FOR_S && provider.isPaused()))
      return sessionOf(stored)
    const tokens = await beginCheck(parts, hash, stored)
    if (tokens) return check(parts, provider, hash, stored, tokens)
    // Another request asks the provider at this moment.
    if (stored.ageS < CONFIRMED_FOR_S) return sessionOf(stored)
    await parts.clock.sleep(POLL_MS)
  }
}

export async function endPersonSession({ db }: Pick<App, 'db'>, token: string): Promise<void> {
  await db.query('delete from people_sessions where hash = $1', [hashKey(token)])
}

async function read({ db }: Parts, hash: Buffer): Promise<Stored | undefined> {
  const [row] = await db.query(
    `select subject, name, access, checked_at, extract(epoch from db_clock() - checked_at) as age
     from people_sessions where hash = $1 and expires_at > db_clock()`,
    [hash],
  )
  return (
    row && {
      subject: row.subject!,
      name: row.name!,
      access: JSON.parse(row.access!) as Access,
      ageS: Number(row.age),
      checkedAt: row.checked_at!,
    }
  )
}

/** The name is the person's own to choose at some providers, so the provider's id of them is shown as well. */
const sessionOf = ({ subject, name, access }: Pick<Stored, 'subject' | 'name' | 'access'>): Session => ({
  id: subject,
  name,
  access,
  actor: { kind: 'person', id: name === subject ? name : `${name} (${subject})` },
})

/** Returns the sealed tokens to one caller of all processes; undefined to the others, until the check ends. */
async function beginCheck({ db }: Parts, hash: Buffer, { checkedAt }: Stored): Promise<Buffer | undefined> {
  const [row] = await db.query(
    `update people_sessions set checking_until = db_clock() + make_interval(secs => $3)
     where hash = $1 and checked_at = $2 and (checking_until is null or checking_until < db_clock())
     returning encode(tokens, 'hex') as tokens`,
    [hash, checkedAt, CHECK_LEASE_S],
  )
  return row && Buffer.from(row.tokens!, 'hex')
}

async function check(
  parts: Parts,
  provider: IdentityProvider,
  hash: Buffer,
  stored: Stored,
  tokens: Buffer,
): Promise<Session | undefined> {
  const { db, seal, log } = parts
  const opened = unsealed(seal, hash, tokens)
  const result = opened
    ? await provider.confirm(stored.subject, opened)
    : { why: 'refused' as const, detail: 'Sealed under another master key.' }
  if (!isRefused(result)) {
    await db.query(
      `update people_sessions set name = $2, access = $3, tokens = $4, checked_at = db_clock(), checking_until = null
       where hash = $1`,
      [hash, result.name, JSON.stringify(result.access), sealed(seal, hash, result)],
    )
    return sessionOf(result)
  }
  const { why, detail, ofInstallation = false } = result
  if (why !== 'unreachable' && !ofInstallation) {
    await db.query('delete from people_sessions where hash = $1', [hash])
    log.info({ person: stored.subject, why, detail, sent: result.sent }, 'The identity provider ended a session.')
    return undefined
  }
  await db.query('update people_sessions set checking_until = null, tokens = coalesce($2, tokens) where hash = $1', [
    hash,
    result.tokens ? sealed(seal, hash, { tokens: result.tokens }) : null,
  ])
  log.warn({ detail }, ofInstallation ? NOT_CONFIRMED : UNREACHABLE)
  if (stored.ageS < CONFIRMED_FOR_S) return sessionOf(stored)
  const cause = ofInstallation ? 'refuses this installation; the log has the reason' : 'cannot be reached'
  throw tryLater(
    'identity_provider_unreachable',
    `The identity provider ${cause}, so your session cannot be confirmed. Try again in a minute.`,
  )
}

const UNREACHABLE = 'The identity provider cannot be reached, so sessions cannot be confirmed.'
const NOT_CONFIRMED =
  'Sessions cannot be confirmed at the identity provider: check OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET and the clock of this machine.'

const contextOf = (hash: Buffer) => `tokens of session ${hash.toString('hex')}`

const sealed = (seal: App['seal'], hash: Buffer, { tokens }: Pick<Person, 'tokens'>) =>
  seal.seal(JSON.stringify(tokens), contextOf(hash))

function unsealed(seal: App['seal'], hash: Buffer, tokens: Buffer): Person['tokens'] | undefined {
  try {
    return JSON.parse(seal.open(tokens, contextOf(hash))) as Person['tokens']
  } catch {
    return undefined
  }
}
