// How long the findings of the doctor are cached for the page that shows them.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openApp } from '../../../src/app.ts'
import { readConfig } from '../../../src/config.ts'
import { createOperator } from '../../../src/core/tenants/operator-keys.ts'
import { openLog } from '../../../src/lib/log.ts'
import { visitorOf } from '../../support/dashboard.ts'
import { untilLocked } from '../../support/database.ts'
import { freshSettings, serve } from '../../support/server.ts'
import { HandClock } from '../../support/time.ts'

const MINUTE_MS = 60_000

const clock = new HandClock()
const settings = await freshSettings({})
const app = await openApp(readConfig(settings.settings), { log: openLog('error', 2) })
const served = await serve({ ...app, clock }, { worker: false })
const visitor = visitorOf(served.adminUrl)
const visit = visitor.visit
const { key } = await app.db.tx((query) => createOperator(query, { name: 'test', scope: 'read' }))
const cookie = await visitor.signIn(key)
after(async () => {
  await served?.stop()
  await app?.close()
  await settings?.remove()
})

/** The instant of the examination that the page shows. */
async function examinedAt(query = ''): Promise<string> {
  const { text } = await visit(`/doctor${query}`, { cookie })
  const at = /<time datetime="([^"]+)"/.exec(text.split('id="findings"')[1] ?? text)?.[1]
  assert.ok(at, text)
  return at
}

test('findings are cached for ten minutes', async () => {
  const first = await examinedAt()
  clock.advance(9 * MINUTE_MS)
  assert.equal(await examinedAt(), first)
  clock.advance(MINUTE_MS)
  assert.notEqual(await examinedAt(), first)
})

test('findings of an examination that takes a minute are cached for twenty', async () => {
  const { db } = app
  const { query, release } = await db.connect()
  await query('begin')
  await query('lock table profiles in access exclusive mode')
  const slow = examinedAt('?now=1')
  await untilLocked(db.query)
  clock.advance(MINUTE_MS)
  await query('commit')
  release()
  const at = await slow
  clock.advance(18 * MINUTE_MS)
  assert.equal(await examinedAt(), at)
  clock.advance(MINUTE_MS)
  assert.notEqual(await examinedAt(), at)
})
