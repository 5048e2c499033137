// Links between the dashboards of several shards; without shards there are none.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { freePort } from '../../support/cli.ts'
import { startDashboard } from '../../support/dashboard.ts'

type Dashboard = Awaited<ReturnType<typeof startDashboard>>

const port = String(await freePort())
const own = `http://127.0.0.1:${port}/`
const all = `north=${own}, south = https://South.tundish.internal`
const alone = await startDashboard()
const shard = await startDashboard({ ADMIN_PORT: port, SHARD_DASHBOARDS: all })
after(async () => {
  await alone.stop()
  await shard.stop()
})

async function page(dashboard: Dashboard, path: string): Promise<string> {
  const cookie = await dashboard.signInAs('read')
  const { status, text } = await dashboard.visit(path, { cookie })
  assert.equal(status, 200)
  return text
}

/** The links of the shards, each `NAME ADDRESS`; the one that is shown ends with `*`. */
function links(text: string): string[] {
  const list = /<nav aria-label="Shards" hx-boost="false">(.*?)<\/nav>/s.exec(text)?.[1] ?? ''
  return [...list.matchAll(/<a href="([^"]+)"( aria-current="true")?>([^<]+)</g)].map(
    ([, href, here, name]) => `${name} ${href}${here ? ' *' : ''}`,
  )
}

test('every page has links to all shards, and marks its own', async () => {
  for (const path of ['/', '/keys'])
    assert.deepEqual(links(await page(shard, path)), [`north ${own} *`, 'south https://south.tundish.internal/'])
  assert.doesNotMatch(await page(alone, '/'), /shard/i)
})

test('the search links to the same search on the other shards', async () => {
  const q = 'ada+1@example.com'
  const text = await page(shard, `/people?q=${encodeURIComponent(q)}`)
  const there = 'https://south.tundish.internal/people?q=ada%2B1%40example.com'
  assert.equal(links(text)[1], `south ${there}`)
  assert.match(text, /Only this shard was searched\. Search on another one:/)
  assert.ok(text.slice(text.indexOf('id="found"')).includes(`<a href="${there}">south</a>`))
  assert.doesNotMatch(await page(alone, '/people?q=nobody'), /shard/i)
})

test('the address in front of all shards shows their dashboards, and takes no key', async () => {
  const headers = { 'x-tundish-shard': 'none' }
  for (const path of ['/', '/sign-in', '/people?q=ada']) {
    const { status, text } = await shard.visit(path, { headers })
    assert.equal(status, 200)
    assert.match(text, /<a href="http:\/\/127\.0\.0\.1:[0-9]+">north<\/a>/)
    assert.match(text, /<a href="https:\/\/south\.tundish\.internal">south<\/a>/)
    assert.doesNotMatch(text, /<form/)
  }
  const { status } = await shard.visit('/assets/dashboard.css', { headers })
  assert.equal(status, 200)
  const { key } = await shard.operator('read')
  const refused = await shard.visit('/sign-in', { headers, form: { operator_key: key } })
  assert.deepEqual([refused.status, refused.headers.get('set-cookie')], [421, null])
  assert.match((await alone.visit('/', { headers })).text, /SHARD_DASHBOARDS/)
})

test('the start refuses a shard without a URL', async () => {
  await assert.rejects(startDashboard({ SHARD_DASHBOARDS: 'north=https://north.example, south' }), /got "south"/)
})
