// The crash matrix: a process dies at a point of a charge or refund, and the system must recover without help.
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Organization, settled } from '../support/billing.ts'
import { FORK_OPTIONS } from '../support/cli.ts'
import { openStand, type ProviderName, type Stand } from './stand.ts'

/** The kind of request, the provider and the card. */
export interface Scenario {
  provider: ProviderName
  kind: 'charge' | 'refund'
  token: string
}

export interface Case extends Scenario {
  /** From 1. */
  point: number
  name: string
}

const CARDS: Record<ProviderName, Record<Scenario['kind'], string[]>> = {
  simulator: {
    charge: [
      'pm_card_visa',
      'pm_card_chargeDeclined',
      'sim_slow_200ms',
      'sim_slow_900ms',
      'sim_charge_then_drop',
      'sim_drop_no_charge',
      'sim_error_500_then_ok',
      'sim_charge_then_500',
      'sim_late_300ms',
      'sim_late_2500ms',
    ],
    refund: ['pm_card_visa', 'sim_refund_fails', 'sim_refund_then_drop', 'sim_refund_drop', 'sim_refund_late_300ms'],
  },
  stripe: {
    charge: [
      'pm_card_visa',
      'pm_card_chargeDeclined',
      'pm_card_authenticationRequired',
      'pm_sim_prepare_drop_before',
      'pm_sim_prepare_drop_after',
      'pm_sim_prepare_late_300ms',
      'pm_sim_confirm_slow_200ms',
      'pm_sim_confirm_slow_900ms',
      'pm_sim_confirm_drop_before',
      'pm_sim_confirm_drop_after',
      'pm_sim_confirm_error_before',
      'pm_sim_confirm_error_after',
      'pm_sim_confirm_late_300ms',
      'pm_sim_confirm_late_2500ms',
      'pm_sim_cancel_drop_after_once',
      'pm_sim_processing_300ms',
    ],
    refund: ['pm_card_visa', 'pm_sim_refund_drop_after', 'pm_sim_refund_drop_before', 'pm_sim_refund_error_after'],
  },
  primer: {
    charge: [
      ...['tok_visa', 'tok_declined', 'tok_authorized', 'tok_needs_action', 'tok_timeout', 'tok_pending_300ms'],
      ...['tok_drop_before', 'tok_drop_after', 'tok_slow_200ms', 'tok_slow_900ms', 'tok_late_300ms', 'tok_late_2500ms'],
    ],
    refund: ['tok_visa', 'tok_refund_drop_after', 'tok_refund_drop_before', 'tok_refund_late_300ms'],
  },
}

export const scenariosOf = (provider: ProviderName): Scenario[] =>
  (['charge', 'refund'] as const).flatMap((kind) => CARDS[provider][kind].map((token) => ({ provider, kind, token })))

// Short, so that leases end soon: half a second for a call, and a second more.
const SETTINGS = { PROVIDER_TIMEOUT_MS: '500' }
// A late charge arrives after 2.5 s; the lease of a dead process ends after 1.5 s; then a look, and a second one 5 s later.
const SETTLED_WITHIN_MS = 120_000
// Writes after the response follow at once.
const LIVES_ON_MS = 5_000
const ATTEMPTS = 3

interface Running {
  child: ChildProcess
  url: string
}

/** A customer whose request was cut off, and how to repeat it. */
interface Victim {
  it: Case
  user: string
  /** Repeats the request that was cut off. */
  again(): ReturnType<Organization['post']>
  orderId: string | undefined
}

export class Matrix {
  readonly #stand: Stand
  readonly #ofVictims: Record<string, string>
  readonly #shop: Organization
  readonly #victims: Victim[] = []
  #next: Promise<Running> | undefined
  #made = 0

  private constructor(stand: Stand, ofVictims: Record<string, string>) {
    this.#stand = stand
    this.#ofVictims = ofVictims
    this.#shop = stand.shop
  }

  /** Starts the surviving process, which settles. `ofVictims`: more environment of those that die, which serve the same database. */
  static async open(provider: ProviderName, ofVictims: Record<string, string> = {}): Promise<Matrix> {
    return new Matrix(await openStand(provider, SETTINGS), ofVictims)
  }

  async close(): Promise<void> {
    const idle = await this.#next?.catch(() => undefined)
    idle?.child.kill('SIGKILL')
    await this.#stand.stop()
  }

  /** The points that this request crosses if no process dies. */
  async points(scenario: Scenario): Promise<Case[]> {
    const { child, url } = await this.#process()
    await this.#request({ ...scenario, point: 0, name: '' }, url)
    child.send({})
    const { points } = await firstMessage<{ points: string[] }>(child)
    child.disconnect()
    await once(child, 'exit')
    return points.map((name, n) => ({ ...scenario, point: n + 1, name }))
  }

  /**
   * Lets a process die at the point. If a slow disk makes the provider's call time out, the request does not reach the point, and
   * another process tries again.
   */
  async crash(it: Case): Promise<void> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const { child, url } = await this.#process()
      child.send({ dieAt: it.point })
      const died = once(child, 'exit')
      const victim = await this.#request(it, url)
      this.#victims.push(victim)
      const [, signal] = await Promise.race([died, sleep(LIVES_ON_MS, [], { ref: false })])
      if (signal === 'SIGKILL') return
      child.kill('SIGKILL')
    }
    assert.fail(`${describe(it)}: the process lived on`)
  }

  /** Checks all victims since the last time, after everything has settled without help. */
  async judge(): Promise<void> {
    await this.#comeToRest()
    const passerBy = await this.#stand.customer(this.#stand.goodCard)
    for (const victim of this.#victims.splice(0)) {
      // Otherwise the circuit opens: many that died before their claim now begin a charge without a response.
      const charge = () => this.#shop.charge(passerBy, { idempotency_key: victim.user })
      // On a busy machine it may time out, and is looked up.
      const { body } = await settled(charge, SETTLED_WITHIN_MS)
      assert.equal(body.checkout_status, 'succeeded', 'a good card in between')
      await this.#judgeOne(victim).catch((error: Error) => {
        throw new Error(`${describe(victim.it)}: ${error.message}`, { cause: error })
      })
    }
  }

  async #comeToRest(): Promise<void> {
    const until = performance.now() + SETTLED_WITHIN_MS
    for (;;) {
      const [row] = await this.#stand.db.query(
        `select (select count(*) from orders where status = 'processing') + (select count(*) from refunds where status = 'processing') as open`,
      )
      if (row!.open === '0') return
      await this.#stand.passTime()
      assert.ok(performance.now() < until, `${row!.open} orders or refunds do not settle by themselves`)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }

  /** The replayed outcome is right, and the ledger, the consumables, the report and the events agree with it. */
  async #judgeOne({ it, user, again, orderId }: Victim): Promise<void> {
    // A request that died before its claim begins only now, and the provider may not have it either.
    const askLater = async () => {
      await this.#stand.passTime()
      return again()
    }
    const { body } = await settled(askLater, SETTLED_WITHIN_MS)
    const status = body.checkout_status ?? body.refund_status
    const id = it.kind === 'charge' ? body.order_id : body.refund_id
    const movements = await this.#stand.movements(it.kind, id)
    assert.equal(movements, status === 'succeeded' ? 1 : 0, `${status}, but ${movements} movements`)
    const consumables = await this.#shop.consumables(user)
    const isBought = it.kind === 'refund' || status === 'succeeded'
    assert.equal(consumables.length, isBought ? 1 : 0, 'consumables')
    if (it.kind === 'refund')
      assert.equal(consumables[0].is_active, status !== 'succeeded', 'the consumable of a refund')
    const rows = (await this.#shop.report({ order_id: body.order_id })).map(
      (row) => `${row.psp_transaction_type} ${row.status}`,
    )
    const refunds = rows.filter((row) => row.startsWith('refund'))
    if (it.kind === 'charge') assert.deepEqual(rows, status === 'cancelled' ? [] : [`sale ${status}`])
    else assert.deepEqual(refunds, [status === 'succeeded' ? 'refund refunded' : 'refund failed'])
    const events = await this.#stand.db.query('select type from events where object_id = $1', [id])
    assert.deepEqual(
      events.map(({ type }) => type),
      [`${it.kind}.${status}`],
    )
    // Over all orders of the customer the money moved once, or not at all.
    const all = await this.#stand.db.query('select order_id from orders where external_id = $1', [user])
    assert.equal(all.length, 1, 'orders')
    if (orderId !== undefined) assert.equal(body.order_id, orderId)
  }

  async #request(it: Case, url: string): Promise<Victim> {
    const n = ++this.#made
    const user = await this.#stand.customer(it.token, `pro_${n}`)
    const orderId = it.kind === 'refund' ? (await this.#shop.charge(user)).body.order_id : undefined
    const money = { amount: '10.50', currency_code: 'USD', client_metadata: { n } }
    const [path, body] =
      it.kind === 'charge'
        ? ['/payment/one_off_charge', { external_id: user, idempotency_key: 'k', ...money }]
        : ['/payment/refund', { external_id: user, idempotency_key: 'k', order_id: orderId }]
    const headers = { 'service-secret-key': this.#shop.key, 'content-type': 'application/json' }
    const target = `${url}/${this.#shop.id}/v1${path}`
    await fetch(target, { method: 'POST', headers, body: JSON.stringify(body) }).catch(() => 'cut off')
    return { it, user, orderId, again: () => this.#shop.post(path as string, body as object) }
  }

  /** A new process; the next one is started at the same time. */
  async #process(): Promise<Running> {
    const next = this.#next ?? this.#spawn()
    this.#next = this.#spawn()
    return next
  }

  async #spawn(): Promise<Running> {
    const env = { ...process.env, ...this.#stand.env, ...this.#ofVictims }
    const child = fork(new URL('child.ts', import.meta.url), { env, execArgv: FORK_OPTIONS, stdio: 'inherit' })
    const { url } = await firstMessage<{ url: string }>(child)
    return { child, url }
  }
}

export const describe = ({ provider, kind, token, point, name }: Case) =>
  `${provider}: ${kind} ${token}, point ${point} (${name})`

async function firstMessage<T>(child: ChildProcess): Promise<T> {
  const died = once(child, 'exit').then(([code, signal]) => {
    throw new Error(`The process ended (${code ?? signal}) before it said anything.`)
  })
  const [message] = await Promise.race([once(child, 'message'), died])
  died.catch(() => {})
  return message as T
}
