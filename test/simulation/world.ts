// One seed: shops with customers, processes that serve them, clients that retry, operators, imports, erasures, and faults.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Audit, openAudit } from '../../src/core/audit/audit.ts'
import { openSeal } from '../../src/lib/secrets.ts'
import { follow, happen } from './actors.ts'
import { Cards, readKept, replaceCards } from './cards.ts'
import { Clients, type Server } from './clients.ts'
import { CreditClients } from './credits.ts'
import type { Database } from './database.ts'
import { dispute } from './disputes.ts'
import { CALM, crash, faultsOf, strike } from './faults.ts'
import { checkReplaced } from './hooks.ts'
import { Invariants } from './invariants.ts'
import { Ledger } from './ledger.ts'
import { strayMoney } from './money-rules.ts'
import { OwnersCalls } from './provider.ts'
import { Random } from './random.ts'
import { planRestore } from './restore.ts'
import { Process, Scheduler, settleDown } from './scheduler.ts'
import { beginIds } from './seeded-ids.ts'
import { startServer } from './server.ts'
import { hasWithholding, openShop, type Shop, shopsOf } from './shops.ts'
import type { Stage } from './stage.ts'
import { Reader } from './state.ts'

export interface Outcome {
  seed: number
  steps: number
  /** The broken rule; undefined if all held. */
  violation: string | undefined
  story: string[]
}

const DEADLINE_MS = 2_000
// Twice what the longest seeds need: their operators compare accounts often. A seed that reaches it does not terminate.
const MAX_STEPS = 60_000
// Faults end after this many steps, so that the seed can end.
const ROUGH_STEPS = 500
// A broken rule stays broken, so not every commit has to be checked.
const CHECKED = 0.3
// The part of the seeds that restore a backup.
const RESTORED = 0.25
// How often a follower reads each project.
const FOLLOWED = 12
// The part of the seeds in which everything stands still for a while, and that in which the clock of the database is set back.
const STANDING_STILL = 0.15
const SET_BACK = 0.15
const LONGEST_STILL_MS = 2 * 3600 * 1000
const FURTHEST_BACK_MS = 30_000
// The part of the organizations of which a customer replaces cards.
const REPLACED = 0.4
// The most disputes of an organization.
const MOST_DISPUTES = 2
// The number of actions other than purchases.
const HAPPENINGS = { least: 2, most: 7, withinMs: 60_000 }

export async function simulate(database: Database, seed: number): Promise<Outcome> {
  checkReplaced()
  beginIds(seed)
  const folder = mkdtempSync(join(tmpdir(), 'tundish-simulation-'))
  const world = new World(database, seed, folder)
  const { now } = performance
  // The program measures time by this clock, and a seed must not depend on the speed of the machine.
  performance.now = () => world.nowMs
  try {
    await world.prepare()
    return await world.run()
  } finally {
    performance.now = now
    world.end()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Whether a backup is restored in the seed: its first choice. */
export const restoresBackup = (seed: number) => new Random(seed).chance(RESTORED)

/** One organization of the seed with its rules. */
interface Tenant {
  shop: Shop
  cards: Cards
  invariants: Invariants
}

class World {
  readonly #database: Database
  readonly #seed: number
  readonly #random: Random
  readonly #scheduler: Scheduler
  readonly #ledger = new Ledger()
  readonly #owners = new OwnersCalls()
  readonly #tenants: Tenant[]
  readonly #reader: Reader
  readonly #credits: CreditClients[] = []
  readonly #faults = { ...CALM }
  readonly #running = new Set<Server>()
  /** Of all processes, dead ones too. */
  readonly #started: Server[] = []
  readonly #erasureLedger: string
  readonly #audit: Audit
  #processes = 0
  #isDirty = false
  /** In half of the seeds statements take time; in the others many run in one millisecond. */
  readonly #isTimePassing: boolean
  #violation: string | undefined

  constructor(database: Database, seed: number, folder: string) {
    this.#database = database
    this.#seed = seed
    this.#random = new Random(seed)
    this.#isTimePassing = seed % 2 === 1
    this.#scheduler = new Scheduler(this.#random)
    this.#tenants = shopsOf(seed).map((shop) => {
      const cards = new Cards()
      return { shop, cards, invariants: new Invariants(database, shop, this.#ledger, cards) }
    })
    this.#reader = new Reader(
      database,
      this.#tenants.map(({ shop }) => shop),
    )
    this.#erasureLedger = join(folder, 'erasures.ndjson')
    this.#audit = openAudit(openSeal(Buffer.alloc(32, 1)), join(folder, 'audit-heads.ndjson'))
  }

  get nowMs(): number {
    return this.#scheduler.nowMs
  }

  async prepare(): Promise<void> {
    const isRestored = this.#random.chance(RESTORED)
    await this.#database.begin(isRestored)
    for (const { shop } of this.#tenants) await openShop(this.#database, shop)
    Object.assign(this.#faults, faultsOf(this.#random))
    for (let n = 0; n < this.#random.between(2, 3); n++) this.#start()
    const tenants = this.#tenants.map((tenant) => this.#open(tenant))
    this.#planJumps()
    if (isRestored) planRestore({ tenants, stopAll: () => this.#stopAll(), restored: () => this.#restored() })
  }

  /** Everything stands still for a while, or the clock of the database is set back and stays behind. */
  #planJumps(): void {
    const { random } = this.#scheduler
    const within = () => random.between(1, HAPPENINGS.withinMs)
    if (random.chance(STANDING_STILL))
      this.#scheduler.add(undefined, within(), () => this.#scheduler.standStill(random.between(1, LONGEST_STILL_MS)))
    if (!random.chance(SET_BACK)) return
    // Cards are compared by the provider's clock.
    for (const { cards } of this.#tenants) cards.isJudged = false
    this.#scheduler.add(undefined, within(), () => {
      const byMs = random.between(1, Math.min(FURTHEST_BACK_MS, this.#scheduler.nowMs))
      this.#scheduler.tell(`the clock of the database is set back by ${byMs} ms`)
      this.#database.setBack(byMs)
    })
  }

  /** Runs purchases and other actions. */
  #open({ shop, cards, invariants }: Tenant): { stage: Stage; clients: Clients } {
    const violated = (text: string) => this.#violate(text)
    const running = () => this.#running
    const clients = new Clients(this.#scheduler, shop.organization, running, violated)
    const credits = new CreditClients(this.#scheduler, shop.organization, running, violated)
    invariants.credits(() => credits.told)
    this.#credits.push(credits)
    for (const { externalId } of shop.customers) {
      if (this.#random.chance(0.5)) void credits.use(externalId, 'c')
      for (let n = 0; n < this.#random.between(0, 2); n++) clients.shop(externalId, `key-${n}`)
    }
    const stage = {
      scheduler: this.#scheduler,
      database: this.#database,
      running,
      shop,
      ledger: this.#ledger,
      cards,
      invariants,
      audit: this.#audit,
      erasureLedger: this.#erasureLedger,
      violated,
    }
    if (this.#random.chance(REPLACED)) void replaceCards(stage, clients)
    for (let n = this.#random.between(0, MOST_DISPUTES); n > 0; n--)
      this.#scheduler.add(undefined, this.#random.between(1, HAPPENINGS.withinMs), () => void dispute(stage))
    for (const project of shop.projects) void follow(stage, project, FOLLOWED)
    for (let n = 0; n < this.#random.between(HAPPENINGS.least, HAPPENINGS.most); n++) {
      this.#scheduler.add(undefined, this.#random.between(1, HAPPENINGS.withinMs), () => void happen(stage))
    }
    return { stage, clients }
  }

  async run(): Promise<Outcome> {
    let steps = 0
    for (; steps < MAX_STEPS && this.#violation === undefined; steps++) {
      if (steps === ROUGH_STEPS) this.#calmDown()
      if (steps < ROUGH_STEPS) strike(this.#scheduler, this.#running, DEADLINE_MS)
      if (!(await this.#goOn())) {
        if (!this.#isDirty) break
        // What the last transaction made due is not known yet.
        await this.#check(false)
        continue
      }
      if (this.#isDirty && this.#random.chance(CHECKED)) await this.#check(false)
    }
    if (steps === MAX_STEPS) this.#violate('it does not come to rest')
    if (this.#violation === undefined) await this.#check(true)
    return { seed: this.#seed, steps, violation: this.#violation, story: this.#scheduler.story }
  }

  /** Frees the resources of the processes. */
  end(): void {
    for (const { process, context } of this.#started) {
      process.crash()
      void context.db.close()
    }
  }

  /** Runs one event, or advances the time to the next; returns false if there is none. */
  async #goOn(): Promise<boolean> {
    const isSlow = this.#random.chance(0.01)
    if (this.#isTimePassing && this.#random.chance(0.5)) this.#scheduler.nowMs += this.#random.between(1, 4)
    if (!isSlow && (await this.#scheduler.step())) {
      await this.#database.settle()
      return true
    }
    // Opening a connection takes more turns of the event loop than a statement.
    await settleDown(60)
    if (!isSlow && this.#scheduler.isReady()) return true
    const { nowMs } = this.#scheduler
    const next = this.#scheduler.nextMs()
    if (next === undefined && !isSlow) return false
    const thenMs = Math.max(next ?? nowMs, nowMs + (isSlow ? this.#random.between(1, 2 * DEADLINE_MS) : 0))
    // All that could have run until then stands still: a statement may wait past its limit for it.
    if (isSlow) this.#scheduler.stillMs += thenMs - nowMs
    this.#scheduler.nowMs = thenMs
    return true
  }

  async #check(isAtRest: boolean): Promise<void> {
    this.#isDirty = false
    const promises = this.#tenants.flatMap(({ invariants }) => invariants.promises())
    const picture = await this.#reader.read(this.#scheduler.nowMs, promises)
    const { states } = picture
    for (const [n, { cards, invariants }] of this.#tenants.entries()) {
      cards.saw(states[n]!.orders, this.#scheduler.nowMs)
      const violation = invariants.check(states[n]!, picture, isAtRest)
      if (violation !== undefined) this.#violate(violation)
    }
    const dueMs = Math.min(...states.map(({ due_ms }) => due_ms ?? Number.POSITIVE_INFINITY))
    this.#scheduler.dueMs = dueMs + this.#database.behindMs
    const stray = isAtRest && strayMoney(states, this.#ledger)
    if (stray) this.#violate(stray)
  }

  async #restored(): Promise<void> {
    const promises = this.#tenants.flatMap(({ invariants }) => invariants.promises())
    const picture = await this.#reader.read(this.#scheduler.nowMs, promises)
    for (const [n, { shop, cards, invariants }] of this.#tenants.entries()) {
      invariants.restored(picture.states[n]!, picture)
      const { nowMs } = this.#scheduler
      cards.restored(nowMs, await readKept(this.#database, nowMs, shop.organization))
    }
    for (const clients of this.#credits) clients.restored()
  }

  #violate(text: string): void {
    this.#violation ??= text
  }

  /** As before a restore: what was being sent to the database never arrives. */
  #stopAll(): void {
    this.#isDirty = true
    for (const one of this.#running) crash(this.#scheduler, one.process)
  }

  #calmDown(): void {
    this.#scheduler.tell('from here on nothing goes wrong')
    Object.assign(this.#faults, CALM)
  }

  /** Starts a process; some time after it dies, another one replaces it. */
  #start(): void {
    const process = new Process(`process ${++this.#processes}`)
    const { random } = this.#scheduler
    const one = startServer({
      process,
      scheduler: this.#scheduler,
      database: this.#database,
      ledger: this.#ledger,
      owners: this.#owners,
      faults: this.#faults,
      organizationId: this.#tenants[0]!.shop.organization,
      deadlineMs: DEADLINE_MS,
      withholds: hasWithholding(this.#seed),
      violated: (text) => this.#violate(text),
      changed: () => {
        this.#isDirty = true
      },
    })
    this.#running.add(one)
    this.#started.push(one)
    process.crashed.then(() => {
      this.#running.delete(one)
      this.#scheduler.add(undefined, random.between(10, 5_000), () => this.#start())
    })
  }
}
