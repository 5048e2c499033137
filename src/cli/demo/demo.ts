// The demo: an organization and a project with a data set, created once, and calls to paste into a shell.
import { Readable } from 'node:stream'
import type { App } from '../../app.ts'
import { addKey, createOrganization, createProject, setOrganization } from '../../core/tenants/tenants.ts'
import { storeSpend } from '../../data/figures/store-spend.ts'
import { importRecords } from '../../data/ingest/load.ts'
import type { Db } from '../../lib/pg/db.ts'
import { bytesFromPg } from '../../lib/pg/row-bytes.ts'
import type { Query } from '../../lib/pg/types.ts'
import type { Seal } from '../../lib/secrets.ts'
import { CAMPAIGNS } from './people.ts'
import { addPrimerAccount } from './primer.ts'
import { demoRecords } from './records.ts'
import { addStripeAccount } from './stripe.ts'
import { type Keys, welcome } from './welcome.ts'

const ID = 'demo'
const LOCK = 7485
const WRITER = 'demo writer'

/** Creates the missing parts of the demo, and returns the text to print. A second start creates nothing. */
export async function prepareDemo(app: App, addresses: { url: string; adminUrl: string | undefined }): Promise<string> {
  await makeLocked(app, addresses.url)
  return welcome(app, addresses, await openKeys(app.db, app.seal))
}

async function isComplete(db: Db): Promise<boolean> {
  const rows = await db.query('select 1 from profiles where project_id = $1 limit 1', [ID])
  return rows.length > 0
}

/** Creates the missing parts under a lock, so that two processes that start at once create one demo. */
async function makeLocked(app: App, url: string): Promise<void> {
  const { query, release } = await app.db.connect()
  try {
    // On a busy machine another process takes longer to create the demo than a statement may.
    await query('set statement_timeout = 0')
    await query('select pg_advisory_lock($1)', [LOCK])
    if (!(await isComplete(app.db))) await make(app)
    await addWriter(app)
    await Promise.all([addStripeAccount(app, url), addPrimerAccount(app, url)])
  } finally {
    // The lock ends with the connection.
    release(true)
  }
}

/** Each step checks whether it was done: an earlier start may have been interrupted. */
async function make(app: App): Promise<void> {
  const { db, seal, log } = app
  if (!(await exists(db, 'organizations'))) await createOrganization(db, seal, { id: ID, name: 'Moonrise (demo)' })
  await setOrganization(db, ID, { enabled: true })
  if (!(await exists(db, 'projects'))) await createProject(db, seal, { id: ID, organization: ID, name: 'Better sleep' })
  log.info('Creating the demo data.')
  const source = { name: 'the demo', stream: () => Readable.from(lines()) }
  const { rejects } = await importRecords(app, { projectId: ID }, [source])
  if (rejects.length > 0) throw new Error(`Bug: the demo's data is refused: ${JSON.stringify(rejects[0])}`)
  await db.tx((query) => spend(query))
  await db.tx((query) => alerts(query))
}

/** What was spent on the campaigns: so much for each visit. */
async function spend(query: Query): Promise<void> {
  const visits = await query(
    `select (created_at at time zone 'UTC')::date::text as day, visit_campaign as campaign, count(*) as visits
     from sessions where project_id = $1 group by 1, 2 order by 1, 2`,
    [ID],
  )
  const rows = visits.flatMap(({ day, campaign, visits: count }) => {
    const { source, dollars } = CAMPAIGNS[campaign!]!
    const amount = (dollars * Number(count)).toFixed(2)
    return dollars > 0 ? [{ day: day!, source, campaign: campaign!, currency: 'USD', amount }] : []
  })
  await storeSpend(query, ID, rows)
}

/**
 * Rules and a morning digest without a destination: they can be looked at, and no message leaves the machine. They are checked first when
 * the figures of the demo have been computed.
 */
async function alerts(query: Query): Promise<void> {
  await query(
    `insert into alert_settings (project_id, digest_hour, quiet_from, quiet_to, next_check_at) values ($1, 7, 22, 6, db_clock() + interval '5 minutes')
     on conflict do nothing`,
    [ID],
  )
  await query(
    `insert into alert_rules (project_id, id, metric, condition, threshold, today, from_hour, created_at, updated_at)
     select $1, id, metric, condition, threshold, false, 0, at, at from (select db_clock() as at) now, (values
       ('low-revenue', 'revenue', 'below', 300), ('fewer-visitors', 'sessions', 'change', -50)) r (id, metric, condition, threshold)
     on conflict do nothing`,
    [ID],
  )
}

/** Creates the key that writes records once: when it was revoked, it is not created again. */
async function addWriter({ db, seal }: App): Promise<void> {
  const made = await db.query('select 1 from secret_keys where project_id = $1 and name = $2', [ID, WRITER])
  if (made.length > 0) return
  await addKey(db.query, seal, { organization_id: ID, project_id: ID }, { name: WRITER, scopes: ['write'] })
}

async function exists(db: Db, table: 'organizations' | 'projects'): Promise<boolean> {
  return (await db.query(`select 1 from ${table} where id = $1`, [ID])).length > 0
}

/** In chunks of many lines: passing single lines is slow. */
function* lines(): Iterable<string> {
  let piece = ''
  for (const record of demoRecords(Date.now())) {
    piece += `${JSON.stringify(record)}\n`
    if (piece.length < 65_536) continue
    yield piece
    piece = ''
  }
  yield piece
}

/**
 * The newest active keys, unsealed: no file or column holds them in clear text. Those with a name belong to a person or a
 * program, except for the demo's own writing key.
 */
async function openKeys(db: Db, seal: Seal): Promise<Keys> {
  const rows = await db.query(
    `select distinct on (project_id, name) project_id, name, id, sealed from secret_keys
     where organization_id = $1 and (project_id is null or project_id = $1)
       and ((name = '' and scopes is null) or (project_id = $1 and name = $2 and scopes = array['write']))
       and (expires_at is null or expires_at > db_clock())
     order by project_id, name, created_at desc`,
    [ID, WRITER],
  )
  const open = (project: string | null, name = '') => {
    const row = rows.find((one) => one.project_id === project && one.name === name)
    return row && seal.open(bytesFromPg(row.sealed!), row.id!)
  }
  return { project: open(ID), organization: open(null), writer: open(ID, WRITER) }
}
