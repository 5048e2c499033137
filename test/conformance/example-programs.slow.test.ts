// Runs each program of examples/ against the server: charges, a sync, and webhooks, in JavaScript, Python and curl.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { webhookSecret } from '../../src/core/tenants/key-text.ts'
import { createOperator } from '../../src/core/tenants/operator-keys.ts'
import { startShop } from '../support/billing.ts'
import { freePort, succeeded, tundish } from '../support/cli.ts'
import { until } from '../support/time.ts'
import { titled } from '../support/titled.ts'

const EXAMPLES = join(import.meta.dirname, '../../examples')
const noPython =
  spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 9))']).status === 0
    ? undefined
    : 'there is no Python 3.9 here'

const line = (record: string, data: object) =>
  JSON.stringify({ record, data: { created_at: '2026-01-31T09:00:00Z', ...data } })
const RECORDS = [
  line('profile', { id: 'pro_1' }),
  line('product', { id: 'prod_1', name: 'Plan', status: 'active' }),
  line('subscription', {
    id: 'sub_1',
    profile_id: 'pro_1',
    product_id: 'prod_1',
    status: 'active',
    renews: true,
    currency: 'USD',
    price: 999,
    billing_interval: 'month',
    billing_interval_count: 1,
  }),
].join('\n')

/** How to run an example by the end of its name. */
const LANGUAGES: Record<string, { program: string; missing: string | undefined }> = {
  mjs: { program: process.execPath, missing: undefined },
  py: { program: 'python3', missing: noPython },
  sh: { program: 'sh', missing: undefined },
}

const { billing, shop } = await startShop({ WEBHOOK_ALLOW_PRIVATE: 'true' }, { worker: false })
const env: Record<string, string> = {
  PATH: process.env['PATH']!,
  TUNDISH_URL: billing.server.url,
  TUNDISH_ADMIN_URL: billing.server.adminUrl,
  ORGANIZATION: shop.id,
  ORGANIZATION_KEY: shop.key,
  PROJECT_KEY: shop.projectKey,
  WEBHOOK_SECRET: webhookSecret(shop.projectKey),
  PORT: '0',
}

/** Starts an example in `cwd`. */
function start(name: string, args: string[], cwd = EXAMPLES) {
  const { program } = LANGUAGES[name.split('.')[1]!]!
  const child = spawn(program, [join(EXAMPLES, name), ...args], { cwd, env })
  const outcome = { output: '', errors: '' }
  child.stdout.setEncoding('utf8').on('data', (text) => {
    outcome.output += text
  })
  child.stderr.setEncoding('utf8').on('data', (text) => {
    outcome.errors += text
  })
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
  return { child, outcome, ended }
}

/** Passes requests on, and spoils the first response. */
async function openLossy(to: string, spoil: (response: ServerResponse, text: string) => void) {
  let calls = 0
  const proxy = createServer(async (request, response) => {
    const { method = 'GET', headers } = request
    const body = method === 'POST' ? Buffer.concat(await request.toArray()) : undefined
    const names = ['service-secret', 'service-secret-key', 'content-type'].filter((name) => headers[name])
    const written = names.map((name) => [name === 'service-secret' ? 'Service-Secret' : name, String(headers[name])])
    const passed = await fetch(to + request.url, { method, headers: Object.fromEntries(written), body })
    const text = await passed.text()
    calls += 1
    response.setHeader('x-sync-horizon', passed.headers.get('x-sync-horizon') ?? '')
    if (calls === 1 || request.url!.includes('/export')) spoil(response, text)
    else response.writeHead(passed.status, { 'content-type': 'application/json' }).end(text)
  })
  await once(proxy.listen(0, '127.0.0.1'), 'listening')
  const close = () => {
    env['TUNDISH_URL'] = to
    proxy.close()
  }
  env['TUNDISH_URL'] = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  return { close }
}

/** The response to some bytes, unless the connection is broken off after them. */
async function exchange(socket: Socket, bytes: string, isBroken = false): Promise<string> {
  let text = ''
  socket.setEncoding('latin1').on('data', (part) => {
    text += part
    socket.end()
  })
  socket.on('error', () => {})
  socket.write(bytes, 'latin1', () => isBroken && socket.destroy())
  await once(socket, 'close')
  return text
}

async function run(name: string, args: string[], cwd?: string) {
  const { outcome, ended } = start(name, args, cwd)
  return { code: await ended, ...outcome }
}

for (const [ending, { missing }] of Object.entries(LANGUAGES)) {
  describe(titled(`the examples in ${ending}`, missing), { skip: missing }, () => {
    test('a charge runs twice and moves money once; a decline ends with 1', async () => {
      const customer = await shop.customer()
      const charge = () => run(`charge.${ending}`, [customer, '9.99', 'USD', 'top-up-1'])
      for (const { code, output, errors } of [await charge(), await charge()]) {
        assert.equal(code, 0, errors)
        assert.match(output, /succeeded/)
      }
      const [{ order_id }] = await shop.consumables(customer)
      assert.equal((await billing.ledger(order_id)).length, 1)
      const declined = await shop.customer({ token: 'pm_card_chargeDeclined' })
      const { code, output } = await run(`charge.${ending}`, [declined, '9.99', 'USD', 'top-up-1'])
      assert.equal(code, 1)
      assert.match(output, /failed/)
    })

    test('a sync reads everything once, and then nothing', async () => {
      const mine = await billing.organization()
      await succeeded(tundish(['import', '--live', '--project', mine.projectId, '-'], billing.server.env, RECORDS))
      env['PROJECT_KEY'] = mine.projectKey
      const folder = mkdtempSync(join(tmpdir(), 'tundish-example-'))
      try {
        await until('the horizon to pass the records', async () => {
          const { headers } = await billing.server.call(
            '/public/v1/subscriptions?filter[updated_at.from]=2000-01-01T00:00:00Z',
            {
              key: mine.projectKey,
            },
          )
          const [row] = await billing.db.query(
            'select max(updated_at) < $1 as passed from subscriptions where project_id = $2',
            [String(headers['x-sync-horizon']), mine.projectId],
          )
          return row!.passed === 't'
        })
        const sync = async () => {
          const { code, output, errors } = await run(`sync.${ending}`, ['horizon.txt'], folder)
          assert.equal(code, 0, errors)
          return ending === 'sh' ? readFileSync(join(folder, 'changes.ndjson'), 'utf8') : output
        }
        const first = await sync()
        const [{ id }] = (await billing.server.call('/public/v1/subscriptions', { key: mine.projectKey })).body.data
        assert.equal(first.split(id).length - 1, 1, first)
        const second = await sync()
        assert.equal(ending === 'sh' ? second.split(id).length - 1 : second.length, ending === 'sh' ? 1 : 0)
        await billing.db.query(
          `update project_clocks set void_from = '2026-01-31T09:00:00Z', void_until = now() + interval '1 day' where project_id = $1`,
          [mine.projectId],
        )
        const { code, errors } = await run(`sync.${ending}`, ['horizon.txt'], folder)
        assert.equal(code, 1)
        const lost =
          'The server has lost commits: delete what has an updated_at from 2026-01-31T09:00:00.000000Z on, and horizon.txt.'
        assert.ok(errors.includes(lost), errors)
      } finally {
        env['PROJECT_KEY'] = shop.projectKey
        rmSync(folder, { recursive: true, force: true })
      }
    })

    test('a charge whose response is lost is sent again', async () => {
      const proxy = await openLossy(billing.server.url, (response) => response.socket!.destroy())
      try {
        const { code, output, errors } = await run(`charge.${ending}`, [await shop.customer(), '9.99', 'USD', 'lost'])
        assert.equal(code, 0, errors)
        assert.match(output, /succeeded/)
      } finally {
        proxy.close()
      }
    })

    test('a charge whose response breaks off has no outcome yet, and is sent again', async () => {
      const proxy = await openLossy(billing.server.url, (response, text) => response.end(text.slice(0, 20)))
      try {
        const args = [await shop.customer(), '9.99', 'USD', 'broken']
        const first = await run(`charge.${ending}`, args)
        // curl sends nothing again: its caller does.
        if (ending === 'sh') assert.deepEqual([first.code, /^No outcome yet: /m.test(first.errors)], [1, true])
        const last = ending === 'sh' ? await run('charge.sh', args) : first
        assert.deepEqual([last.code, /succeeded/.test(last.output)], [0, true], last.errors)
      } finally {
        proxy.close()
      }
    })

    if (ending === 'sh') return

    test('a receiver takes a signed event, and refuses others with 401', async () => {
      const { child, outcome, ended } = start(`webhook.${ending}`, [])
      try {
        await until('the receiver to listen', () => /listening on \d+/.test(outcome.output))
        const [, port] = /listening on (\d+)/.exec(outcome.output)!
        const body = JSON.stringify({ id: 'evt_1', type: 'charge.succeeded', data: { order_id: 'order-1' } })
        const send = async (key: string, at = new Date()) => {
          const signature = new Webhook(key).sign('evt_1', at, body)
          const stamp = String(Math.floor(at.getTime() / 1000))
          const headers = { 'webhook-id': 'evt_1', 'webhook-timestamp': stamp, 'webhook-signature': signature }
          return (await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body })).status
        }
        const secret = env['WEBHOOK_SECRET']!
        // One sender stays silent, one breaks off, one sends a signature that is no text: the next event is received.
        const silent = connect(Number(port), '127.0.0.1')
        const head = 'POST / HTTP/1.1\r\nHost: shop\r\nContent-Length: 2\r\n'
        await exchange(connect(Number(port), '127.0.0.1'), `${head}\r\n{`, true)
        const stamp = Math.floor(Date.now() / 1000)
        for (const at of [stamp, '\xb2']) {
          const forged = `${head}webhook-id: a\r\nwebhook-timestamp: ${at}\r\nwebhook-signature: v1,${'é'.repeat(44)}\r\n\r\n{}`
          assert.match(await exchange(connect(Number(port), '127.0.0.1'), forged), / 401 /)
        }
        assert.equal(await send(secret), 204)
        assert.equal(await send(webhookSecret('secret_of_another_project')), 401)
        assert.equal(await send(secret, new Date(Date.now() - 3_600_000)), 401)
        await until('the event to be printed', () => outcome.output.includes('evt_1 charge.succeeded order-1'))
        silent.destroy()
      } finally {
        child.kill()
        await ended
      }
    })
  })
}

test('sync.sh keeps the horizon of an export that ends before its last line', async () => {
  const proxy = await openLossy(billing.server.url, (response, text) => response.end(text.split('{"horizon"')[0]))
  const folder = mkdtempSync(join(tmpdir(), 'tundish-example-'))
  try {
    const { code, errors } = await run('sync.sh', ['horizon.txt'], folder)
    assert.deepEqual(
      [code, errors, existsSync(join(folder, 'horizon.txt'))],
      [1, 'The export broke off: run it again.\n', false],
    )
  } finally {
    proxy.close()
    rmSync(folder, { recursive: true, force: true })
  }
})

test('webhook.sh creates an endpoint and sends a test event to it', async () => {
  env['OPERATOR_KEY'] = (await billing.db.tx((query) => createOperator(query, { name: 'example', scope: 'write' }))).key
  const { code, output, errors } = await run('webhook.sh', [shop.projectId, 'http://127.0.0.1:9/hook'])
  assert.equal(code, 0, output + errors)
  const rows = await billing.db.query(
    `select e.url, (select count(*) from events v where v.project_id = e.project_id and v.type = 'endpoint.test') as tests
     from webhook_endpoints e where e.project_id = $1`,
    [shop.projectId],
  )
  assert.deepEqual(
    rows.map(({ url, tests }) => [url, tests]),
    [['http://127.0.0.1:9/hook', '1']],
  )
})

test('charge.mjs ends with a sentence where no server responds', async () => {
  const to = env['TUNDISH_URL']!
  env['TUNDISH_URL'] = 'http://127.0.0.1:9'
  const { code, errors } = await run('charge.mjs', ['ada', '9.99', 'USD', 'top-up-1'])
  env['TUNDISH_URL'] = to
  assert.deepEqual([code, errors], [1, 'No outcome yet: run it again later with the same key.\n'])
})

for (const [name, changes, sentence] of [
  ['sync', { TUNDISH_URL: `http://127.0.0.1:${await freePort()}` }, /^http:\/\/127\.0\.0\.1:\d+: .*refused/i],
  ['sync', { PROJECT_KEY: 'secret_wrong' }, /Unauthorized/],
  ['sync', { PROJECT_KEY: '' }, /^Set TUNDISH_URL and PROJECT_KEY/],
  ['charge', { ORGANIZATION_KEY: '' }, /^Set TUNDISH_URL, ORGANIZATION and ORGANIZATION_KEY/],
  ['webhook', { WEBHOOK_SECRET: '' }, /^Set WEBHOOK_SECRET/],
  ['webhook', { PORT: new URL(billing.server.url).port }, /in use/],
] as const)
  for (const ending of ['mjs', 'py'])
    test(`${name}.${ending} ends with one sentence and 1 for ${Object.keys(changes)[0]} that is wrong`, {
      skip: LANGUAGES[ending]!.missing,
    }, async () => {
      const before = { ...env }
      Object.assign(env, changes)
      const running = run(`${name}.${ending}`, [join(tmpdir(), 'tundish-example-never')])
      Object.assign(env, before)
      const { code, errors } = await running
      assert.match(errors, sentence)
      assert.deepEqual([code, errors.trimEnd().split('\n').length], [1, 1], errors)
    })

for (const ending of ['mjs', 'py'])
  test(`webhook.${ending} ends with one sentence where the project's key is given as its webhook_secret`, {
    skip: LANGUAGES[ending]!.missing,
  }, async () => {
    const before = { ...env }
    // A port that is in use, so that a program that takes the key ends as well.
    Object.assign(env, { WEBHOOK_SECRET: shop.projectKey, PORT: new URL(billing.server.url).port })
    const running = run(`webhook.${ending}`, [])
    Object.assign(env, before)
    const { code, errors } = await running
    assert.deepEqual([code, errors], [1, 'Set WEBHOOK_SECRET to the webhook_secret of the project: whsec_…\n'])
  })

test('webhook.sh says why an endpoint is refused', async () => {
  const { code, errors } = await run('webhook.sh', [shop.projectId, 'ftp://127.0.0.1/hook'])
  assert.deepEqual([code, errors.includes('{"message":"url must be a URL')], [1, true], errors)
})
