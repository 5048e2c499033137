// What responses leave behind in memory: it goes at once. What lasts makes major collections, and each of those holds up others.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { Agent } from 'node:http'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Billing, type Organization, startBilling } from '../../support/billing.ts'
import { type ServerProcess, startProcess } from '../../support/cli.ts'
import { type ApiResponse, scrape, send } from '../../support/server.ts'

const LAUNCHER = fileURLToPath(new URL('../../../bin/tundish', import.meta.url))
const AT_ONCE = 16
const READS = 8000
const CHARGES = 2500
const CUSTOMERS = 200
// So many that none of their keys comes to its limit.
const READERS = 10
// What is compiled, cached and kept for good is there after so many.
const WARM_UP = 500
// Some garbage does last: of what is under way while two young collections pass. It makes one, or none.
const MAX_MAJOR = 2

describe('a server under load', { timeout: 600_000 }, () => {
  let billing: Billing
  let shop: Organization
  let server: ServerProcess
  const customers: string[] = []
  const readers: Organization[] = []
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE })

  before(async () => {
    billing = await startBilling({ PROVIDER_TIMEOUT_MS: '30000' }, { worker: false })
    shop = await billing.organization()
    for (let n = 0; n < READERS; n++) readers.push(await billing.organization())
    for (let n = 0; n < CUSTOMERS; n++) customers.push(await shop.customer({ profileId: `profile-${n}` }))
    const env = { ...billing.server.env, PATH: process.env['PATH']! }
    server = await startProcess(env, [], [LAUNCHER])
  })
  after(async () => {
    agent.destroy()
    await server.stop()
    await billing.stop()
  })

  async function many(count: number, ask: (n: number) => Promise<ApiResponse>): Promise<void> {
    let next = 0
    const work = async () => {
      while (next < count) {
        const { status, text } = await ask(next++)
        assert.equal(status, 200, text)
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
  }

  const collections = async (kind: 'major' | 'minor') => {
    const text = await scrape(server)
    // There is no sample of a kind that has not happened yet.
    return Number(new RegExp(`^nodejs_gc_duration_seconds_count\\{kind="${kind}"\\} (\\d+)`, 'm').exec(text)?.[1] ?? 0)
  }

  async function collectionsOf(count: number, ask: (n: number) => Promise<ApiResponse>) {
    await many(WARM_UP, ask)
    const before = { major: await collections('major'), minor: await collections('minor') }
    await many(count, ask)
    return { major: (await collections('major')) - before.major, minor: (await collections('minor')) - before.minor }
  }

  test('makes hardly a major collection for thousands of reads', async () => {
    const read = (n: number) =>
      send(agent, server.url, '/public/v1/subscriptions', { key: readers[n % READERS]!.projectKey })
    const { major, minor } = await collectionsOf(READS, read)
    assert.ok(minor >= 20, `${minor} minor collections`)
    assert.ok(major <= MAX_MAJOR, `${major} major collections`)
  })

  test('makes hardly one for thousands of charges', async () => {
    const charge = (n: number) =>
      send(agent, server.url, `/${shop.id}/v1/payment/one_off_charge`, {
        method: 'POST',
        body: {
          external_id: customers[n % CUSTOMERS],
          amount: '1.00',
          currency_code: 'USD',
          idempotency_key: randomUUID(),
        },
        headers: ['service-secret-key', shop.key, 'Content-Type', 'application/json'],
      })
    const { major, minor } = await collectionsOf(CHARGES, charge)
    assert.ok(minor >= 20, `${minor} minor collections`)
    assert.ok(major <= MAX_MAJOR, `${major} major collections`)
  })
})
