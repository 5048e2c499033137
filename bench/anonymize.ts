// The case "anonymize": the personal data of a thousand people with ten sessions each, erased by one request.
import { randomUUID } from 'node:crypto'
import { Agent } from 'node:http'
import type { Param, Query } from '../src/lib/pg/types.ts'
import { requestText } from './client.ts'
import { PROJECT } from './generate.ts'
import { alternate, type Result, type Run } from './measure.ts'
import type { Options } from './options.ts'
import { record } from './record.ts'
import { withCpu } from './requests.ts'
import { openRig, type Rig, startOurs, startReference } from './rig.ts'
import type { Recorded } from './tools.ts'

const PEOPLE = 1000
const SESSIONS = 10
const PATH = '/public/v1/profiles/anonymize'

/** Each run erases other people. The limit is the same statements, sent one by one in one transaction. */
export async function measureAnonymize(options: Options, say: (text: string) => void): Promise<Result> {
  const rig = await openRig({ say, durable: true })
  try {
    const contenders = 3
    const runs = contenders * (options.rounds + 1) + 1
    say(`Making ${runs} times ${PEOPLE} people with ${SESSIONS} sessions each…`)
    await rig.app.db.tx((query) => makePeople(query, runs))
    await rig.app.db.query('analyze')
    const ours = await startOurs(rig, options)
    const plain = await startReference(rig, 'plain.ts')
    let batch = 0
    const headers = { 'Service-Secret': rig.key }
    const { statements } = await record(rig, { method: 'POST', path: PATH, headers, body: bodyOf(0) }, { once: true })
    const agent = new Agent({ keepAlive: true })
    const timed =
      (work: (batch: number) => Promise<unknown>): Run =>
      async () => {
        batch += 1
        const begunMs = performance.now()
        await work(batch)
        return { perSecond: (PEOPLE * 1000) / (performance.now() - begunMs) }
      }
    const result = await alternate(
      'anonymize',
      'profiles',
      {
        ours: withCpu(
          rig,
          ours,
          timed((n) => requestText(agent, ours.url + PATH, headers, bodyOf(n))),
        ),
        limit: timed((n) => replay(rig, statements, n)),
        plain: withCpu(
          rig,
          plain,
          timed((n) => requestText(agent, `${plain.url}/profiles/anonymize`, {}, bodyOf(n))),
        ),
      },
      options,
    )
    agent.destroy()
    await checkErased(rig, runs)
    return result
  } finally {
    await rig.close()
  }
}

const prefixOf = (batch: number) => `batch_${String(batch).padStart(3, '0')}`
const bodyOf = (batch: number) => ({
  profile_ids: Array.from({ length: PEOPLE }, (_, n) => `${prefixOf(batch)}_${String(n + 1).padStart(4, '0')}`),
})

async function makePeople(query: Query, batches: number): Promise<void> {
  const id = `'batch_' || lpad(b::text, 3, '0') || '_' || lpad(n::text, 4, '0')`
  const people = `generate_series(0, ${batches - 1}) b, generate_series(1, ${PEOPLE}) n`
  const sessions = `${people}, generate_series(1, ${SESSIONS}) s`
  await query(
    `insert into profiles (project_id, id, created_at, updated_at, email, email_folded, phone)
     select '${PROJECT}', ${id}, now(), now(), ${id} || '@example.com', ${id} || '@example.com', '+491234' from ${people}`,
  )
  await query(
    `insert into sessions (project_id, id, created_at, updated_at, profile_id, ip, user_agent, origin, query_params)
     select '${PROJECT}', ${id} || '_' || s, now(), now(), ${id}, '192.0.2.1', 'Mozilla/5.0', 'https://example.com/a?b=c',
       '{"utm_source": "x"}' from ${sessions}`,
  )
  await query(
    `insert into replies (project_id, session_id, screen_id, element_id, screen_index, element_type, value)
     select '${PROJECT}', ${id} || '_' || s, 'screen', 'element', 0, 'Input', '"an answer"' from ${sessions}`,
  )
}

/** Runs the recorded statements for other people. Not those of the audit log, a chain to which no entry can be added twice. */
async function replay({ app }: Rig, statements: Recorded[], batch: number): Promise<void> {
  const fresh = new Map<string, string>()
  const other = (text: string) =>
    text.replaceAll(prefixOf(0), prefixOf(batch)).replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (id) => {
      const made = fresh.get(id) ?? randomUUID()
      fresh.set(id, made)
      return made
    })
  const param = (value: Param): Param =>
    typeof value === 'string' ? other(value) : Array.isArray(value) ? value.map(other) : value
  await app.db.tx(async (query) => {
    for (const { text, params } of statements) {
      if (!/^(begin|commit)$|audit_/.test(text)) await query(text, params.map(param))
    }
  })
}

async function checkErased({ app }: Rig, batches: number): Promise<void> {
  const [left] = await app.db.query(
    `select (select count(*) from profiles where email is not null) + (select count(*) from sessions where ip is not null)
       + (select count(*) from replies where value::text <> 'null') as n`,
  )
  if (left!.n !== '0') throw new Error(`Of ${batches} times ${PEOPLE} people ${left!.n} rows are not erased.`)
}
