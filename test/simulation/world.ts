// One seed: a small shop with a few customers, processes that charge, refund and settle, clients that try again, and faults.

import type { BillingContext } from '../../src/billing/context.ts'
import { startSettling } from '../../src/billing/unknown/settling.ts'
import { fixedProviders } from '../../src/providers/fixed.ts'
import { Clients, type Server } from './clients.ts'
import type { Database, DatabaseFaults } from './database.ts'
import { Invariants } from './invariants.ts'
import { Ledger, type NetworkFaults, OwnersCalls, providerOf } from './provider.ts'
import { Random } from './random.ts'
import { Process, Scheduler, settleDown } from './scheduler.ts'
import { beginIds } from './seeded-ids.ts'
import { isLoss } from './session.ts'

export interface Outcome {
  seed: number
  steps: number
  /** The broken rule; undefined when all held. */
  violation: string | undefined
  story: string[]
}

const DEADLINE_MS = 2_000
const CALM: DatabaseFaults & NetworkFaults = {
  before: 0,
  after: 0,
  crash: 0,
  lost: 0,
  late: 0,
  unanswered: 0,
  declined: 0.1,
}
// More than any seed needs: whoever needs more does not come to rest.
const MOST_STEPS = 5_000
// Faults end after this many steps, so that everything can come to rest.
const ROUGH_STEPS = 160

export async function simulate(database: Database, seed: number): Promise<Outcome> {
  beginIds(seed)
  const world = new World(database, seed)
  await world.prepare()
  return world.run()
}

class World {
  readonly #database: Database
  readonly #seed: number
  readonly #random: Random
  readonly #scheduler: Scheduler
  readonly #organization: string
  readonly #ledger = new Ledger()
  readonly #owners = new OwnersCalls()
  readonly #invariants: Invariants
  readonly #faults = { ...CALM }
  readonly #running = new Set<Server>()
  #processes = 0
  #isDirty = false
  #violation: string | undefined

  constructor(database: Database, seed: number) {
    this.#database = database
    this.#seed = seed
    this.#random = new Random(seed)
    this.#scheduler = new Scheduler(this.#random)
    this.#organization = `sim-${seed}`
    this.#invariants = new Invariants(database, this.#organization, `${this.#organization}-app`, this.#ledger)
  }

  /** Two customers, one of them linked to a profile, with a card each. */
  async prepare(): Promise<void> {
    await this.#database.begin()
    await this.#database.ask(0, PREPARE, [this.#organization])
    const some = (most: number) => (this.#random.chance(0.5) ? this.#random.next() * most : 0)
    Object.assign(this.#faults, {
      before: some(0.05),
      after: some(0.08),
      crash: some(0.04),
      lost: some(0.3),
      late: some(0.3),
      unanswered: some(0.4),
    })
    for (let n = 0; n < this.#random.between(2, 3); n++) this.#start()
    const clients = new Clients(
      this.#scheduler,
      this.#organization,
      () => this.#running,
      (text) => this.#violate(text),
    )
    for (const customer of ['ada', 'bob']) {
      for (let n = 0; n < this.#random.between(1, 3); n++) clients.shop(customer, `key-${n}`)
    }
  }

  async run(): Promise<Outcome> {
    let steps = 0
    for (; steps < MOST_STEPS && this.#violation === undefined; steps++) {
      if (steps === ROUGH_STEPS) this.#calmDown()
      if (steps < ROUGH_STEPS) this.#misfortune()
      if (!(await this.#goOn())) break
      if (this.#isDirty) await this.#check(false)
    }
    if (steps === MOST_STEPS) this.#violate('it does not come to rest')
    if (this.#violation === undefined) await this.#check(true)
    for (const { process } of this.#running) process.crash()
    return { seed: this.#seed, steps, violation: this.#violation, story: this.#scheduler.story }
  }

  /** One thing happens now, or time goes on to the next; false when all is at rest. */
  async #goOn(): Promise<boolean> {
    const isSlow = this.#random.chance(0.03)
    if (!isSlow && ((await this.#scheduler.step()) || ((await settleDown(20)) && (await this.#scheduler.step())))) {
      await this.#database.settle()
      return true
    }
    const { nowMs } = this.#scheduler
    const next = this.#scheduler.nextMs()
    if (next === undefined && !isSlow) return false
    this.#scheduler.nowMs = Math.max(next ?? nowMs, nowMs + (isSlow ? this.#random.between(1, 2 * DEADLINE_MS) : 0))
    return true
  }

  async #check(isAtRest: boolean): Promise<void> {
    this.#isDirty = false
    const { nowMs } = this.#scheduler
    const { violation, waitMs } = await this.#invariants.check(nowMs, isAtRest)
    this.#scheduler.dueMs = waitMs === null ? Number.POSITIVE_INFINITY : nowMs + waitMs
    if (violation !== undefined) this.#violate(violation)
  }

  #violate(text: string): void {
    this.#violation ??= text
  }

  /** Now and then a process dies, or stands still for longer than its leases last. */
  #misfortune(): void {
    const chance = this.#random.next()
    if (this.#running.size === 0) return
    const unlucky = this.#random.pick([...this.#running])
    if (chance < 0.006) this.#crash(unlucky)
    else if (chance < 0.02) {
      const ms = this.#random.between(1, 3 * DEADLINE_MS)
      this.#scheduler.tell(`${unlucky.process.name} stands still for ${ms} ms`)
      unlucky.process.pausedUntilMs = this.#scheduler.nowMs + ms
    }
  }

  #crash(one: { process: Process }): void {
    this.#scheduler.tell(`${one.process.name} dies`)
    one.process.crash()
  }

  #calmDown(): void {
    this.#scheduler.tell('from here on nothing goes wrong')
    Object.assign(this.#faults, CALM)
  }

  /** Starts a process; when it dies, another one starts in its place a while later. */
  #start(): void {
    const process = new Process(`process ${++this.#processes}`)
    const { random } = this.#scheduler
    const changed = () => {
      this.#isDirty = true
    }
    const violated = (text: string) => this.#violate(text)
    const log = ({ err }: { err?: Error }, text: string) => {
      this.#scheduler.tell(`${process.name} logs: ${text}`)
      if (err && !isLoss(err)) this.#violate(`an error of ours: ${err.stack}`)
    }
    const provider = providerOf(
      process,
      this.#scheduler,
      this.#ledger,
      this.#owners,
      this.#faults,
      DEADLINE_MS,
      violated,
    )
    const context: BillingContext = {
      db: this.#database.of(process, this.#scheduler, this.#faults, changed),
      providers: fixedProviders([provider]),
      clock: this.#scheduler.clockOf(process),
      log: { info: log, warn: log, error: log } as unknown as BillingContext['log'],
      providerTimeoutMs: DEADLINE_MS,
    }
    const one = { process, context }
    startSettling(context)
    this.#running.add(one)
    process.crashed.then(() => {
      this.#running.delete(one)
      this.#scheduler.add(undefined, random.between(10, 5_000), () => this.#start())
    })
  }
}

// The customer `ada` is linked to a profile.
const PREPARE = {
  name: 'prepare a shop',
  text: `
    with organization as (
      insert into organizations (id, name, one_off_charge_enabled) values ($1, $1, true)),
    clock as (insert into organization_clocks (organization_id) values ($1)),
    project as (insert into projects (id, organization_id, name) values ($1 || '-app', $1, '')),
    project_clock as (insert into project_clocks (project_id) values ($1 || '-app')),
    profile as (
      insert into profiles (project_id, id, created_at, updated_at) values ($1 || '-app', 'pro_ada', db_clock(), db_clock())),
    customers as (
      insert into customers (organization_id, external_id, project_id, profile_id, created_at, updated_at)
      values ($1, 'ada', $1 || '-app', 'pro_ada', db_clock(), db_clock()), ($1, 'bob', $1 || '-app', null, db_clock(), db_clock()))
    insert into report_transactions (organization_id, external_id, imported, updated_at, order_id, trx_id, trx_created_at,
      amount, currency_code, status, psp, psp_transaction_type, payment_method_token)
    select $1, external_id, true, db_clock(), gen_random_uuid(), gen_random_uuid(), stamp::timestamptz, 5, 'EUR',
      'succeeded', 'simulator', 'sale', 'card'
    from (values ('ada', '2020-01-01'), ('bob', '2020-01-02')) v (external_id, stamp)`,
}
