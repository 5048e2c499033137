// The responses to Stripe's notifications: by signature, while a secret is rotated, for accounts that do not exist.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { signature } from '../../../src/simulators/stripe/events.ts'
import { until } from '../../support/time.ts'
import { setUpStripeShop } from './stripe-shop.ts'

const setup = setUpStripeShop()
const { charged, isActive } = setup

const DAY_MS = 86_400_000

describe('the endpoint responds', () => {
  const event = (more: object = {}) =>
    JSON.stringify({ id: 'evt_1', object: 'event', type: 'invoice.paid', created: 1, data: { object: {} }, ...more })
  const nowS = () => Math.floor(Date.now() / 1000)
  async function send(body: string, header: string | undefined, url = setup.account.eventsUrl) {
    const headers = { 'content-type': 'application/json', ...(header !== undefined && { 'stripe-signature': header }) }
    const response = await fetch(url, { method: 'POST', headers, body })
    return [response.status, response.headers.get('x-error-code'), await response.text()] as const
  }

  test('200 for a kind that is of no use, and for a copy', async () => {
    for (let n = 0; n < 2; n += 1) {
      const [status, , text] = await send(event(), signature(event(), [setup.account.secret], nowS()))
      assert.deepEqual([status, text], [200, '{"received":true}'])
    }
  })

  test('200 through the whole rotation of a secret at Stripe', async () => {
    // What is refused is not found in the list of events then.
    await setup.putOffReading()
    const arrived = async (what: string) => {
      const { user, charge } = await charged()
      await setup.stripe.control('/refunds', { charge })
      await until(what, async () => !(await isActive(user)))
    }
    // Stripe signs with both secrets, and the account still has the old one alone.
    const rolled = await setup.stripe.control<{ secret: string }>(
      `/webhook_endpoints/${setup.account.endpointId}/roll`,
      {
        keep_ms: DAY_MS,
      },
    )
    assert.notEqual(rolled.secret, setup.account.secret)
    await arrived('it to be accepted by the old secret')
    // Both are stored, then the old one ends at Stripe.
    await setup.account.connect([rolled.secret, setup.account.secret])
    await setup.stripe.control('/clock', { advance_ms: DAY_MS })
    await arrived('it to be accepted by the new secret')
    await setup.account.connect([rolled.secret])
    assert.equal((await send(event(), signature(event(), [setup.account.secret], nowS())))[0], 400)
    await arrived('it to be accepted when the old secret is gone')
    await setup.account.connect(['whsec_anotherOne00', rolled.secret, setup.account.secret])
  })

  test('200 while a secret is rotated, by any of those it has', async () => {
    for (const secrets of [['whsec_anotherOne00'], ['whsec_unknown', setup.account.secret]])
      assert.equal((await send(event(), signature(event(), secrets, nowS())))[0], 200)
  })

  const wrong: Record<string, () => string | undefined> = {
    'no signature': () => undefined,
    'a signature of another secret': () => signature(event(), ['whsec_unknown'], nowS()),
    'a signature of another body': () => signature(event({ id: 'evt_2' }), [setup.account.secret], nowS()),
    'a signature that is too old': () => signature(event(), [setup.account.secret], nowS() - 301),
    'a signature from the future': () => signature(event(), [setup.account.secret], nowS() + 900),
    'a signature without a time': () => signature(event(), [setup.account.secret], nowS()).replace(/t=\d+,/, ''),
  }
  for (const [what, header] of Object.entries(wrong)) {
    test(`400 invalid_signature for ${what}`, async () => {
      const [status, code] = await send(event(), header())
      assert.deepEqual([status, code], [400, 'invalid_signature'])
    })
  }

  /** The reason in the log for the refusal of an event with this header. */
  async function whyRefused(header: string): Promise<unknown> {
    const { server } = setup.billing
    const before = server.logLines().length
    assert.equal((await send(event(), header))[0], 400)
    const lines = server
      .logLines()
      .slice(before)
      .map((line) => JSON.parse(line))
    const [refusal] = lines.filter(({ msg }) => msg === 'A notification was refused.')
    assert.deepEqual([refusal.level, refusal.organizationId], [40, setup.shop.id])
    return refusal.why
  }

  test('the log has the reason of a refusal: the clock, or the secret', async () => {
    const { secret } = setup.account
    assert.match(String(await whyRefused(signature(event(), [secret], nowS() - 600))), /signed \d+ s before .*clock/)
    assert.match(String(await whyRefused(signature(event(), [secret], nowS() + 600))), /signed \d+ s after .*clock/)
    assert.match(
      String(await whyRefused(signature(event(), ['whsec_unknown'], nowS()))),
      /none of .*secrets, or the body/,
    )
  })

  test('400 with the difference of the clocks, for a valid signature alone', async () => {
    const messageFor = async (secret: string) =>
      JSON.parse((await send(event(), signature(event(), [secret], nowS() - 3600)))[2]).message
    const refused = await messageFor('whsec_unknown')
    const late = await messageFor(setup.account.secret)
    assert.ok(late.startsWith(`${refused} Its signature is valid, but it was signed `), late)
    assert.match(late, / \d+ s before the time of this server's clock\.$/)
  })

  const unusable: Record<string, [body: string, sentence: RegExp]> = {
    'no data': [event({ data: null }), /an object in data\.object/],
    'no object': [event({ data: { object: null } }), /an object in data\.object/],
    'an object that is a list': [event({ data: { object: [] } }), /an object in data\.object/],
    'no type': [event({ type: undefined }), /a type/],
    'the form of a thin event': [
      JSON.stringify({
        ...{ id: 'evt_thin', object: 'v2.core.event', type: 'v1.customer.created', livemode: false },
        ...{ created: '2026-11-01T00:00:00.000Z', context: null },
        related_object: { id: 'cus_1', type: 'customer', url: '/v1/customers/cus_1' },
      }),
      /^\{"message":"This is a thin event, .* \\"Snapshot\\"/,
    ],
    'null as a whole': ['null', /must be an event of Stripe/],
  }
  for (const [what, [body, sentence]] of Object.entries(unusable)) {
    test(`400 and a sentence for a signed event with ${what}`, async () => {
      const [status, code, text] = await send(body, signature(body, [setup.account.secret], nowS()))
      assert.deepEqual([status, code], [400, 'invalid_value'], text)
      assert.match(text, sentence)
    })
  }

  test('400 in the same words for an account or organization that does not exist', async () => {
    const header = signature(event(), [setup.account.secret], nowS())
    const [, , known] = await send(event(), signature(event(), ['whsec_unknown'], nowS()))
    for (const [from, to] of [
      [setup.shop.id, 'nobody'],
      ['acct_', 'acct_none'],
      ['/stripe/', '/simulator/'],
      ['/stripe/', '/__proto__/'],
      ['/stripe/', '/constructor/'],
    ] as const) {
      const [status, , text] = await send(event(), header, setup.account.eventsUrl.replace(from, to))
      assert.deepEqual([status, text], [400, known], to)
    }
  })
})
