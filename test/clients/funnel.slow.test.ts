// npm run example in a browser: a visitor answers, pays, buys tokens, spends some, is refunded and erased. Each step is seen in the
// API, on the dashboard, by the webhook and in a copy, and all of it belongs to one profile.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Page } from 'playwright-core'
import { readerOf } from '../data/sync/copies.ts'
import { noBrowser, type OpenBrowser, openBrowser } from '../support/browser.ts'
import { freePort, PROGRAM_ENV, tundish } from '../support/cli.ts'
import { temporaryFolder } from '../support/folder.ts'
import type { Json } from '../support/server.ts'
import { until } from '../support/time.ts'
import { titled } from '../support/titled.ts'

const ROOT = join(import.meta.dirname, '../..')
const EMAIL = 'ada.example@example.com'
const folder = temporaryFolder()
const copy = join(folder, 'copy.sqlite')
const readCopy = readerOf(`sqlite:${copy}`)

let example: ChildProcess
let printed = ''
let opened: OpenBrowser
let quizUrl: string
let url: string
let key: string

before(async () => {
  if (noBrowser) return
  const [port, quizPort] = [await freePort(), await freePort()]
  quizUrl = `http://127.0.0.1:${quizPort}`
  const env = { DATA_DIR: join(folder, 'data'), PORT: String(port), EXAMPLE_PORT: String(quizPort) }
  example = spawn(process.execPath, ['examples/funnel/start.mjs'], {
    cwd: ROOT,
    env: { ...PROGRAM_ENV, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  for (const stream of [example.stdout!, example.stderr!])
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text
    })
  await until('the example to start', () => {
    assert.equal(example.exitCode, null, printed)
    return printed.includes(`The quiz: ${quizUrl}`)
  })
  url = /Data API +(http\S+)\/public/.exec(printed)![1]!
  key = /Service-Secret +(secret_\S+)/.exec(printed)![1]!
  opened = await openBrowser()
})
after(async () => {
  await opened?.close()
  if (example && example.exitCode === null) {
    example.kill('SIGTERM')
    await once(example, 'exit')
  }
})

test('refuses a port that is taken or is none, before anything is started', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  after(() => other.close())
  await once(other, 'listening')
  for (const port of [(other.address() as AddressInfo).port, 'http']) {
    const env = { ...PROGRAM_ENV, DATA_DIR: join(folder, 'unused'), PORT: String(await freePort()) }
    const refused = spawnSync(process.execPath, ['examples/funnel/start.mjs'], {
      cwd: ROOT,
      env: { ...env, EXAMPLE_PORT: String(port) },
      encoding: 'utf8',
    })
    assert.match(
      refused.stderr,
      new RegExp(`^The quiz cannot use port ${port} \\(.*\\): set EXAMPLE_PORT to another\\.\n$`),
    )
    assert.deepEqual([refused.status, refused.stdout, existsSync(env.DATA_DIR)], [2, '', false])
  }
})

const api = async (path: string): Promise<Json> =>
  (await fetch(`${url}/public/v1${path}`, { headers: { 'Service-Secret': key } })).json()
const events = async (): Promise<Json[]> => (await fetch(`${quizUrl}/events`)).json() as Promise<Json[]>
const untilEvent = (type: string, about: (data: Json) => boolean = () => true) =>
  until(`the event ${type}`, async () => (await events()).some((one) => one.type === type && about(one.data)))

/** Copies until the rows of a table are as they should be. */
async function untilCopied(table: string, isDone: (rows: Json[]) => boolean): Promise<void> {
  await until(`${table} in the copy`, async () => {
    const { code, stderr } = await tundish(['sync', '--to', `sqlite:${copy}`], { SYNC_URL: url, SYNC_KEY: key })
    assert.equal(code, 0, stderr)
    return existsSync(copy) && isDone(await readCopy(table))
  })
}

test(titled('each step of the example is seen everywhere, on one profile', noBrowser), {
  skip: noBrowser,
}, async () => {
  const context = await opened.browser.newContext()
  const quiz = await context.newPage()
  const dashboard = await context.newPage()
  const link = /^http\S+\/sign-in\?token=\S+/m.exec(printed)![0]
  const adminUrl = new URL(link).origin
  await dashboard.goto(link)
  const untilShown = (path: string, text: RegExp) =>
    until(`${text} on ${path}`, async () => {
      await dashboard.goto(adminUrl + path)
      return text.test((await dashboard.textContent('main')) ?? '')
    })
  const press = (name: string) => quiz.click(`button:has-text("${name}")`)

  await quiz.goto(`${quizUrl}/?utm_campaign=autumn`)
  const cookies = await context.cookies(quizUrl)
  const profile = cookies.find(({ name }) => name === 'visitor')!.value
  const ofPerson = (rows: Json[]) => rows.filter((row) => row.profile_id === profile)
  const person = `/people/${profile}?project=demo`
  await untilEvent('profile.created', ({ id }) => id === profile)
  await untilCopied('sessions', (rows) => ofPerson(rows).length === 1)
  await untilShown('/funnels/fun_example?project=demo', /Sleep quiz \(example\)/)

  await press('6 to 7')
  await press('Wake up rested')
  const { id: session } = (await readCopy('sessions')).find((row) => row.profile_id === profile)!
  await until('the replies', async () => (await api(`/sessions/${session}/replies`)).length === 2)
  await untilCopied('replies', (rows) => ofPerson(rows).length === 2)

  await quiz.fill('[name=email]', EMAIL)
  await press('Continue')
  await until('the address', async () => (await api(`/profiles/${profile}`)).email === EMAIL)
  await untilShown(person, /ada\.example@example\.com/)
  await untilCopied('profiles', (rows) => rows.some((row) => row.id === profile && row.email === EMAIL))

  await press('Go to checkout')
  const wayBack = quiz.waitForRequest((request) => request.url().startsWith(`${quizUrl}/paid?`))
  await press('Pay')
  await quiz.waitForURL(`${quizUrl}/`)
  await cannotTakeOver((await wayBack).url())
  await press('Buy 100 tokens')
  await untilTokens(quiz, '100')
  await untilEvent('subscription.active')
  await untilEvent('charge.succeeded')
  await untilEvent('credits.granted')
  const subscriptions = () => api(`/subscriptions?filter[profile_id]=${profile}`)
  await until('the subscription', async () => (await subscriptions()).data?.length === 1)
  await untilShown(person, /active/i)
  await untilCopied('subscriptions', (rows) => ofPerson(rows).some((row) => row.session_id === session))
  await untilCopied('credit_entries', (rows) => ofPerson(rows).some((row) => row.account === 'granted'))
  await untilCopied('transactions', (rows) => ofPerson(rows).length === 2)

  await press('Take a lesson')
  await untilTokens(quiz, '90')
  await untilEvent('credits.spent')
  await untilCopied('credit_balances', (rows) => ofPerson(rows).some((row) => Number(row.balance) === 90))

  await press('Refund')
  await untilTokens(quiz, '-10')
  await untilEvent('refund.succeeded')
  await untilEvent('credits.revoked')
  await untilShown(person, /-10/)
  await untilCopied('credit_balances', (rows) => ofPerson(rows).some((row) => Number(row.balance) === -10))

  await press('Delete my data')
  await untilEvent('profile.anonymized', ({ id }) => id === profile)
  assert.equal((await api(`/profiles/${profile}`)).email, null)
  await untilCopied('profiles', (rows) => rows.some((row) => row.id === profile && row.email === null))
  await dashboard.goto(adminUrl + person)
  assert.doesNotMatch((await dashboard.textContent('main')) ?? '', /ada\.example/)
  assert.deepEqual((await api(`/profiles?filter[email]=${EMAIL}`)).data, [])
})

/** Another visitor who opens the address with which this one came back from the checkout would pay with this one's card. */
async function cannotTakeOver(address: string): Promise<void> {
  const first = await fetch(quizUrl)
  const headers = { cookie: first.headers.get('set-cookie')!.split(';')[0]! }
  const send = async (path: string, fields: Record<string, string>) =>
    (await fetch(quizUrl + path, { method: 'POST', headers, body: new URLSearchParams(fields) })).text()
  await send('/answer', { value: '6 to 7' })
  await send('/answer', { value: 'Wake up rested' })
  assert.match(await send('/email', { email: 'other.example@example.com' }), /Go to checkout/)
  const taken = await fetch(address, { headers })
  assert.deepEqual([taken.status, /This is not your checkout/.test(await taken.text())], [502, true])
  assert.match(await (await fetch(quizUrl, { headers })).text(), /Go to checkout/)
}

const untilTokens = (quiz: Page, tokens: string) =>
  until(`${tokens} tokens`, async () => (await quiz.textContent('#tokens').catch(() => '')) === tokens)
