// Clients that copy a list by windows, and the rows that slow writers in other processes committed, to compare with the copies.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Project } from '../../support/server.ts'
import { until } from '../../support/time.ts'
import { pages, walk } from '../../support/walk.ts'

const WRITER = fileURLToPath(new URL('slow-writer.ts', import.meta.url))
const START = '2000-01-01T00:00:00.000000Z'

/** The commits of the writers: the last stamp of each id, and every pair `id stamp`. */
export class Written {
  last = new Map<string, string>()
  all = new Set<string>()
  add(id: string, stamp: string): void {
    this.all.add(`${id} ${stamp}`)
    if (stamp > (this.last.get(id) ?? '')) this.last.set(id, stamp)
  }
}

/** A client that copies a list window by window. */
export class Follower {
  seen: string[] = []
  from = START
  readonly #project: Pick<Project, 'get'>
  constructor(project: Pick<Project, 'get'>) {
    this.#project = project
  }

  async step(horizon = () => this.horizon()): Promise<void> {
    const to = await horizon()
    const window = { 'filter[updated_at.from]': this.from, 'filter[updated_at.to]': to, limit: '3' }
    const items = await walk(this.#project, '/profiles', window)
    for (const { id, updated_at } of items) this.seen.push(`${id} ${updated_at}`)
    this.from = to
  }

  /** Windows without an end: rows newer than the horizon are read again later, and none may be missed either. */
  async openStep(): Promise<void> {
    const window = { 'filter[updated_at.from]': this.from, limit: '20' }
    for await (const { items, horizon } of pages(this.#project, '/profiles', window)) {
      for (const { id, updated_at } of items) this.seen.push(`${id} ${updated_at}`)
      this.from = horizon!
    }
  }

  async horizon(): Promise<string> {
    const { headers } = await this.#project.get('/profiles', { 'filter[updated_at.from]': this.from, limit: '1' })
    return String(headers['x-sync-horizon'])
  }

  /** Continues until the horizon has passed everything that was written. */
  async catchUp({ last }: Written): Promise<void> {
    const newest = [...last.values()].sort().at(-1) ?? START
    await until(`the horizon to pass ${newest}`, async () => {
      await this.step()
      return this.from > newest
    })
  }

  check(written: Written): void {
    assert.equal(new Set(this.seen).size, this.seen.length, 'It received a change twice.')
    const strange = this.seen.filter((one) => !written.all.has(one))
    assert.deepEqual(strange, [], 'It received changes that were not committed.')
    assert.deepEqual(this.missing(written), [], 'It missed changes.')
  }

  missing(written: Written): string[] {
    const seen = new Set(this.seen)
    return [...written.last].map(([id, stamp]) => `${id} ${stamp}`).filter((one) => !seen.has(one))
  }
}

/** Runs writers in as many processes, until they end. */
export async function writeSlowly(
  databaseUrl: string,
  projectId: string,
  written: Written,
  names: string[],
  milliseconds: number,
): Promise<void> {
  await Promise.all(
    names.map(async (name) => {
      const args = [WRITER, databaseUrl, projectId, name, String(milliseconds)]
      const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
      const ended = once(child, 'exit')
      for await (const line of createInterface({ input: child.stdout })) {
        for (const [id, stamp] of JSON.parse(line)) written.add(id, stamp)
      }
      assert.deepEqual(await ended, [0, null])
    }),
  )
}
