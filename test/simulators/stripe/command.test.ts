// `tundish simulator --dialect stripe` as a program: what was answered before a kill -9 is there after it.
import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { PROGRAM_ENV, spawnTundish, tundish } from '../../support/cli.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { savedCard, stripeClient, TEST_KEY } from '../../support/simulators.ts'

const folder = temporaryFolder()

async function start(...more: string[]): Promise<{ child: ChildProcess; url: string }> {
  const args = ['simulator', '--dialect', 'stripe', '--port', '0', ...more]
  const env = { ...PROGRAM_ENV, DATA_DIR: folder }
  const child = spawnTundish(args, env, ['ignore', 'pipe', more.length > 0 ? 'pipe' : 'inherit'])
  const [said] = await once(child.stdout!, 'data')
  const [, url] = /start Tundish with STRIPE_API_URL=(http:\/\/127\.0\.0\.1:\d+)\n$/.exec(String(said)) ?? []
  return { child, url: url ?? assert.fail(String(said)) }
}

async function kill(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

test('payments, refunds and keys survive a kill -9, and a second simulator cannot open the ledger', async () => {
  const first = await start()
  const stripe = stripeClient(first.url, TEST_KEY)
  const create = { amount: 1000, currency: 'usd', ...(await savedCard(stripe)) }
  const made = await stripe.paymentIntents.create(create, { idempotencyKey: 'once' })
  await stripe.paymentIntents.confirm(made.id, { off_session: true })
  const refund = await stripe.refunds.create({ payment_intent: made.id, amount: 400 })
  const taken = await tundish(['simulator', '--dialect', 'stripe', '--port', '0'], { DATA_DIR: folder })
  assert.equal(taken.code, 2)
  assert.match(taken.stderr, /^Another simulator has .*simulator-stripe\.ndjson open/)
  await kill(first.child)
  const second = await start()
  const again = stripeClient(second.url, TEST_KEY)
  const found = await again.paymentIntents.retrieve(made.id, { expand: ['latest_charge'] })
  assert.equal(found.status, 'succeeded')
  assert.equal((found.latest_charge as { amount_refunded: number }).amount_refunded, 400)
  assert.equal((await again.refunds.list({ payment_intent: made.id })).data[0]?.id, refund.id)
  assert.equal((await again.paymentIntents.create(create, { idempotencyKey: 'once' })).id, made.id)
  await kill(second.child)
})

test('a sentence for --demo-customers in an account that has customers, which stays as it is', async () => {
  const { child, url } = await start('--demo-customers', '3')
  try {
    let said = ''
    for await (const part of child.stderr!) {
      said += part
      if (said.endsWith('\n')) break
    }
    assert.match(said, /^The account in .+\.ndjson has customers already \(1\), so none were added: start with another/)
    assert.equal((await stripeClient(url, TEST_KEY).customers.list()).data.length, 1)
  } finally {
    await kill(child)
  }
})

test('2 and a sentence for a dialect that there is not', async () => {
  const { code, stderr } = await tundish(['simulator', '--dialect', 'esperanto'], { DATA_DIR: folder })
  assert.equal(code, 2)
  assert.match(stderr, /tundish, stripe/)
})
