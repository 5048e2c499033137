// Sends the examples of the README and of the reference to the demo, unchanged.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { prepareDemo } from '../../src/cli/demo/demo.ts'
import { followAll } from '../../src/data/figures/follow.ts'
import { tundishAgain } from '../support/resident.ts'
import { type Json, startTestServer } from '../support/server.ts'
import { openSimulator } from '../support/simulators.ts'
import { until } from '../support/time.ts'

const run = promisify(execFile)
const README = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8')

const simulator = await openSimulator()
const server = await startTestServer({ SIMULATOR_URL: simulator.url })
const text = await prepareDemo(server.app, { url: server.url, adminUrl: undefined })
const key = (header: string) => new RegExp(`^ *${header} +(secret_\\S+)`, 'm').exec(text)![1]!
const keys: { KEY: string; ORG_KEY: string } = { KEY: key('Service-Secret'), ORG_KEY: key('service-secret-key') }
after(async () => {
  await server.stop()
  await simulator.cleanUp()
})

interface Example {
  comment: string
  call: string
}

/** The calls of a section, each with the comment above it. */
function examplesIn(section: string): Example[] {
  const text = new RegExp(`^## ${section}\\n([\\s\\S]+?)(?=^## )`, 'm').exec(README)![1]!
  const shell = [...text.matchAll(/```sh\n([\s\S]+?)```/g)].map(([, code]) => code!).join('\n')
  const calls = [...shell.matchAll(/((?:^#.*\n)*)(^curl (?:.*\\\n)*.*$)/gm)]
  return calls.map(([, comment, call]) => ({ comment: comment!.trim(), call: call! }))
}

async function responseOf(call: string, more: Record<string, string> = {}): Promise<Json> {
  const line = call.replaceAll('http://127.0.0.1:8080', server.url)
  const { stdout } = await run('bash', ['-c', line], { env: { PATH: process.env['PATH'], ...keys, ...more } })
  return JSON.parse(stdout)
}

test('every call of the README has the response that its comment describes', async () => {
  const examples = examplesIn('First calls')
  assert.ok(examples.length >= 9)
  let order = ''
  for (const { comment, call } of examples) {
    const response = await responseOf(call, { ORDER_ID: order })
    assert.equal('message' in response, /refused/.test(comment), `${call}: ${JSON.stringify(response)}`)
    if (response.data) assert.ok(response.data.length > 0, call)
    if (!call.includes('one_off_charge') || 'message' in response) continue
    assert.equal(response.checkout_status, /declined/.test(comment) ? 'failed' : 'succeeded', call)
    if (!/declined/.test(comment)) order = response.order_id
  }
})

test('the example of a charge in the reference succeeds, like its example response', async () => {
  const { body: description } = await server.call('/openapi.json')
  const { requestBody, responses } = description.paths['/{org_id}/v1/payment/one_off_charge'].post
  const response = await server.call('/demo/v1/payment/one_off_charge', {
    method: 'POST',
    headers: ['service-secret-key', keys.ORG_KEY],
    body: exampleOf(description, requestBody.content['application/json'].schema),
  })
  assert.equal(response.body.checkout_status, 'succeeded', response.text)
  assert.equal(exampleOf(description, responses['200'].content['application/json'].schema).checkout_status, 'succeeded')
})

test('search finds the demo’s Ada by the address that the guides use', async () => {
  const { data } = await responseOf(
    `curl -gs -H "Service-Secret: $KEY" 'http://127.0.0.1:8080/public/v1/subscriptions?filter[email]=ada@example.com'`,
  )
  assert.ok(data.some(({ status }: Json) => status === 'active'))
})

/** The object of the examples of a schema's properties. */
function exampleOf(description: Json, schema: Json): Json {
  const known = schema.$ref ? description.components.schemas[schema.$ref.split('/').at(-1)] : schema
  const properties = Object.entries<Json>(known.properties).map(([name, one]) => [name, one.examples?.[0]])
  return Object.fromEntries(properties.filter(([, example]) => example !== undefined))
}

test('every command for your own data in the README succeeds, with the file that it writes, and so does the charge', async () => {
  const text = /^## Your own data\n([\s\S]+?)(?=^## )/m.exec(README)![1]!
  const folder = mkdtempSync(join(tmpdir(), 'tundish-readme-'))
  try {
    const [, file, records] = /^cat > (\S+) <<END\n([\s\S]+?)^END$/m.exec(text)!
    writeFileSync(join(folder, file!), records!.replaceAll('$NOW', new Date().toISOString()))
    const commands = [...text.matchAll(/^bin\/tundish ([^#\n]+)/gm)].map(([, words]) => words!.trim().split(' '))
    assert.ok(commands.length >= 5)
    let key = ''
    for (const words of commands) {
      const given = words.map((word) => (word === file ? join(folder, word) : word))
      const { code, stdout, stderr } = await tundishAgain(given, server.env)
      assert.equal(code, 0, `${words.join(' ')}: ${stderr}`)
      if (words.join(' ') === 'org create acme') key = /^secret_\S+$/m.exec(stdout)![0]
    }
    const [charge] = examplesIn('Your own data')
    assert.equal((await responseOf(charge!.call, { ACME_KEY: key })).checkout_status, 'succeeded')
    const asked = ['figures', 'show', 'revenue,sales', '--project', 'shop', '--test', 'true', '--json']
    await until('the figures to have both payments', async () => {
      await followAll(server.db)
      const { data } = JSON.parse((await tundishAgain(asked, server.env)).stdout)
      return data[0]?.values.revenue === 29.98 && data[0].values.sales === 2
    })
    assert.match(text, /two sales, and a revenue of \$29\.98/)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('every call of the operator’s API in the guides exists', async () => {
  const { paths } = (await (await fetch(`${server.adminUrl}/openapi.json`)).json()) as Json
  const routes = Object.entries<Json>(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => new RegExp(`^${method} ${path.replaceAll(/\{[a-z_]+\}/g, '[^/]+')}$`, 'i')),
  )
  const calls = ['operators', 'finance', 'erasure', 'figures', 'import'].flatMap((name) => {
    const page = readFileSync(join(import.meta.dirname, `../../docs/${name}.md`), 'utf8')
    const curls = [...page.matchAll(/^curl (.*)"\$API(\/[^"?]*)/gm)]
    const spans = [...page.matchAll(/`(GET|POST) (\/admin\/v1[^`]*)`/g)].map(([, method, path]) => `${method} ${path}`)
    return [...curls.map(([, given, path]) => `${/-X (\w+)/.exec(given!)?.[1] ?? 'GET'} /admin/v1${path}`), ...spans]
  })
  assert.ok(calls.length >= 15)
  assert.deepEqual(
    calls.filter((call) => !routes.some((route) => route.test(call))),
    [],
  )
})
