// The crash matrix for work besides requests: a process is killed at a border, another one repeats the work, the result is checked.
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { startBilling } from '../support/billing.ts'
import { FORK_OPTIONS } from '../support/cli.ts'
import { startReceiver } from '../support/receiver.ts'
import { openStripeSimulator } from '../support/simulators.ts'
import type { Ground, Row } from './victim.ts'
import { makeBackup } from './victims-of-data.ts'
import { doWork } from './works.ts'

// The size of the imported account: its lists have objects of each kind.
const CUSTOMERS = 25
// Longer than a piece of work takes.
const AGAIN_MS = 20_000

export class WorkMatrix {
  readonly #ground: Ground
  readonly #close: () => Promise<void>

  private constructor(ground: Ground, close: () => Promise<void>) {
    this.#ground = ground
    this.#close = close
  }

  static async open(): Promise<WorkMatrix> {
    // Only the processes of the matrix do background work.
    const stripe = await openStripeSimulator({ demoCustomers: CUSTOMERS })
    const settings = { WEBHOOK_ALLOW_PRIVATE: 'true', STRIPE_API_URL: stripe.url }
    const billing = await startBilling(settings, { worker: false })
    const [shop, receiver, made] = [await billing.organization(), await startReceiver(), await makeBackup()]
    return new WorkMatrix({ billing, shop, receiver, stripe, ...made }, async () => {
      await receiver.close()
      await billing.stop()
      await stripe.cleanUp()
      await made.source.remove()
    })
  }

  close(): Promise<void> {
    return this.#close()
  }

  /** The borders to die at, evenly spread over those that the work crosses. */
  async borders(row: Row, most: number): Promise<number[]> {
    const victim = await row.make(this.#ground)
    const child = await this.#spawn(row)
    child.send({ subject: victim.subject, dieAt: 0 })
    const died = once(child, 'exit').then(([code]) => assert.fail(`${row.title}: the process ended with ${code}`))
    const [{ crossed }] = (await Promise.race([once(child, 'message'), died])) as [{ crossed: number }]
    died.catch(() => {})
    child.kill('SIGKILL')
    await victim.checkResult()
    await victim.remove?.()
    assert.ok(crossed > 0, `${row.title} crossed no border: PostgreSQL is not reached by a socket of the file system`)
    const chosen = Math.min(most, crossed)
    return Array.from({ length: chosen }, (_, n) => 1 + Math.floor((n * (crossed - 1)) / Math.max(1, chosen - 1)))
  }

  /** Kills a process at a border and checks the result; returns whether it died. If it crosses fewer borders, it finishes its work. */
  async crash(row: Row, dieAt: number): Promise<boolean> {
    const victim = await row.make(this.#ground)
    try {
      const child = await this.#spawn(row)
      const ended = once(child, 'exit')
      child.send({ subject: victim.subject, dieAt })
      const [first] = await Promise.race([ended.then(() => ['died']), once(child, 'message')])
      child.kill('SIGKILL')
      const [code, signal] = await ended
      assert.equal(signal, 'SIGKILL', `it ended with ${code}`)
      await victim.afterKill?.()
      // On a slow machine PostgreSQL may take the lease for the killed process only now.
      const again = setInterval(() => void victim.afterKill?.().catch(() => {}), AGAIN_MS)
      await doWork(row.work, this.#ground.billing.server.env, victim.subject).finally(() => clearInterval(again))
      await victim.checkResult()
      return first === 'died'
    } catch (error) {
      throw new Error(`${row.title}, killed at border ${dieAt}: ${(error as Error).message}`, { cause: error })
    } finally {
      await victim.remove?.()
    }
  }

  async #spawn({ work }: Row): Promise<ChildProcess> {
    const env = { ...process.env, ...this.#ground.billing.server.env, WORK: work }
    const child = fork(new URL('work-child.ts', import.meta.url), { env, execArgv: FORK_OPTIONS, stdio: 'inherit' })
    await once(child, 'message')
    return child
  }
}
