// Authentication of the data API: which keys are valid, the 401 for all others, and how keys are replaced.
import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createOrganization, createProject, regenerateKey, within } from '../../../src/core/tenants/tenants.ts'
import { startProcess, tundish } from '../../support/cli.ts'
import { dump } from '../../support/database.ts'
import { send, startTestServer } from '../../support/server.ts'
import { until } from '../../support/time.ts'

const REFUSAL =
  '{"message":"Unauthorized: send the project\'s secret key once, in a header named exactly Service-Secret (the name is case-sensitive)."}'

const server = await startTestServer()
after(() => server.stop())
const project = await server.project()
const billingKey = (await createOrganization(server.db, server.app.seal, { id: 'payer' })).secret_key

describe('authentication of the data API', () => {
  const regenerate = (overlapSeconds = 0) =>
    regenerateKey(server.db, server.app.seal, { project: project.id }, overlapSeconds)
  const status = async (key: string) => (await server.api('/funnels', { key })).status

  test('200 with the key in Service-Secret', async () => {
    assert.equal(await status(project.key), 200)
  })

  const wrong: [what: string, headers: () => string[]][] = [
    ['no header', () => []],
    ['an empty header', () => ['Service-Secret', '']],
    ['service-secret', () => ['service-secret', project.key]],
    ['SERVICE-SECRET', () => ['SERVICE-SECRET', project.key]],
    ['Service-secret', () => ['Service-secret', project.key]],
    ['Service_Secret', () => ['Service_Secret', project.key]],
    ['Authorization', () => ['Authorization', `Bearer ${project.key}`]],
    ['the header twice', () => ['Service-Secret', project.key, 'Service-Secret', project.key]],
    ['the header twice, once in small letters', () => ['Service-Secret', project.key, 'service-secret', project.key]],
    ['another key', () => ['Service-Secret', `secret_${'A'.repeat(43)}`]],
    ['a part of the key', () => ['Service-Secret', project.key.slice(0, -1)]],
    ['the key in other case', () => ['Service-Secret', project.key.toUpperCase()]],
    ['the key and more', () => ['Service-Secret', `${project.key}, ${project.key}`]],
    ["an organization's key", () => ['Service-Secret', billingKey]],
  ]
  for (const [what, headers] of wrong) {
    test(`401 for ${what}`, async () => {
      const response = await server.api('/funnels', { headers: headers() })
      assert.deepEqual([response.status, response.text], [401, REFUSAL])
    })
  }

  test('401 that says which API a service-secret-key is for, whether or not the key is right', async () => {
    for (const key of [project.key, billingKey, 'secret_x']) {
      const { status, body } = await server.api('/funnels', { headers: ['service-secret-key', key] })
      const hint = ' The header service-secret-key is for the billing API, with the key of an organization.'
      assert.deepEqual([status, body.message], [401, `${JSON.parse(REFUSAL).message}${hint}`])
    }
  })

  test('401 before path, query, method or body are checked', async () => {
    const calls: [path: string, method?: string, body?: string, headers?: string[]][] = [
      ['/nothing'],
      ['/'],
      ['/funnels/nobody'],
      ['/%ff'],
      ['/funnels/%ff'],
      [`/funnels/${'x'.repeat(5000)}`],
      ['/funnels?nonsense=%ff'],
      ['/funnels?limit=0'],
      ['/funnels', 'DELETE'],
      ['/funnels', 'PROPFIND'],
      ['/nothing', 'POST', '{'],
      ['/my_assets', 'POST', '{}'],
      ['/profiles/anonymize', 'POST'],
      ['/profiles/anonymize', 'POST', '{'],
      ['/profiles/anonymize', 'POST', '{}', ['Content-Type', 'text/plain']],
      ['/profiles/anonymize', 'POST', 'x'.repeat(2 * 1024 * 1024)],
    ]
    for (const [path, method, body, headers] of calls) {
      const response = await server.api(path, { method, body, headers })
      assert.deepEqual([response.status, response.text], [401, REFUSAL], `${method} ${path}`)
    }
    assert.equal((await server.api('/funnels', { method: 'HEAD' })).status, 401)
  })

  test('any case of the name with SECRET_HEADER_CASE=any, and still only once', async () => {
    const lenient = await startTestServer({ ...server.env, SECRET_HEADER_CASE: 'any' })
    try {
      for (const name of ['Service-Secret', 'service-secret', 'SERVICE-SECRET']) {
        assert.equal((await lenient.api('/funnels', { headers: [name, project.key] })).status, 200)
      }
      const twice = ['service-secret', project.key, 'Service-Secret', project.key]
      const { status, body } = await lenient.api('/funnels', { headers: twice })
      assert.equal(status, 401)
      assert.equal(body.message, "Unauthorized: send the project's secret key once, in the header Service-Secret.")
    } finally {
      await lenient.stop()
    }
  })

  test('a key is `secret_` and 43 characters, shown once and nowhere in the database', async () => {
    const { secret_key: key } = await createProject(server.db, server.app.seal, { id: 'quiet', organization: 'payer' })
    assert.match(key, /^secret_[A-Za-z0-9_-]{43}$/)
    const everything = await dump(server.db)
    assert.match(everything, /quiet/)
    assert.ok(!everything.includes(key) && !everything.includes(key.slice(7)))
  })

  test('regenerating ends the old key, with an overlap later', async () => {
    const first = (await regenerate()).secret_key
    const second = await regenerate(3600)
    assert.deepEqual([await status(first), await status(second.secret_key)], [200, 200])
    const inAnHour = Date.parse(second.previous_expires_at!) - Date.now()
    assert.ok(Math.abs(inAnHour - 3_600_000) < 60_000)
    // A longer overlap afterwards gives the first key no longer life, and none at all ends both.
    const third = await regenerate(7200)
    const [row] = await server.db.query(
      'select count(*) as n from secret_keys where project_id = $1 and expires_at between $2::timestamptz and $2',
      [project.id, second.previous_expires_at],
    )
    assert.equal(row?.n, '1')
    const fourth = await regenerate()
    assert.equal(fourth.previous_expires_at, null)
    await sleep(1000)
    const keys = [first, second.secret_key, third.secret_key, fourth.secret_key]
    assert.deepEqual(await Promise.all(keys.map(status)), [401, 401, 401, 200])
  })

  test('401 for an old key after its overlap', async () => {
    const old = (await regenerate()).secret_key
    await regenerate(3600)
    assert.equal(await status(old), 200)
    await server.db.query(
      `update secret_keys set expires_at = db_clock() + interval '1 second' where project_id = $1 and expires_at > db_clock()`,
      [project.id],
    )
    await sleep(2000)
    assert.equal(await status(old), 401)
  })

  test('only the last of two keys regenerated at the same time is valid', async () => {
    let second: Promise<{ secret_key: string }> | undefined
    const first = await server.db.tx(async (query) => {
      const made = await regenerateKey(within(query), server.app.seal, { project: project.id })
      second = regenerate()
      await sleep(100)
      return made
    })
    const last = await second!
    assert.deepEqual([await status(first.secret_key), await status(last.secret_key)], [401, 200])
  })

  test("regenerating a project's key leaves its organization's and other projects' keys alone", async () => {
    const neighbour = await server.project(project.organizationId)
    await regenerate()
    assert.equal(await status(neighbour.key), 200)
    await regenerateKey(server.db, server.app.seal, { organization: project.organizationId })
    assert.equal(await status(neighbour.key), 200)
  })

  test('the command prints the new key, and every process refuses the old one within a second', async () => {
    const old = (await regenerate()).secret_key
    const servers = await Promise.all([startProcess(server.env), startProcess(server.env)])
    const agent = new Agent({ keepAlive: true })
    try {
      const asking = new AbortController()
      const lastAccepted = servers.map(() => 0)
      const askers = servers.map(async ({ url }, n) => {
        while (!asking.signal.aborted) {
          const sent = performance.now()
          const { status } = await send(agent, url, '/public/v1/funnels', { key: old })
          if (status === 200) lastAccepted[n] = sent
          await sleep(10)
        }
      })
      await until('both processes to accept the old key', () => lastAccepted.every((last) => last > 0))
      // A key in use is read again after half a second: replaced in the middle of that.
      await sleep(700)
      const fresh = (await regenerate()).secret_key
      const ended = performance.now()
      await sleep(1300)
      asking.abort()
      await Promise.all(askers)
      for (const last of lastAccepted)
        assert.ok(last < ended + 1000, `The old key was accepted for ${Math.round(last - ended)} ms.`)
      const ask = (key: string) => send(agent, servers[0]!.url, '/public/v1/funnels', { key })
      assert.equal((await ask(fresh)).status, 200)

      const { code, stdout } = await tundish(
        ['keys', 'regenerate', '--yes', '--project', project.id, '--overlap', '24h', '--json'],
        server.env,
      )
      const printed = JSON.parse(stdout)
      assert.equal(code, 0)
      assert.equal(printed.webhook_secret, `whsec_${Buffer.from(printed.secret_key).toString('base64')}`)
      assert.deepEqual([(await ask(printed.secret_key)).status, (await ask(fresh)).status], [200, 200])
    } finally {
      agent.destroy()
      await Promise.all(servers.map((one) => one.stop()))
    }
  })
})
