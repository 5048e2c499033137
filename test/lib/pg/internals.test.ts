// The internals of pg that src/lib/pg depends on, one by one: when an update changes one, its test says which and who uses it.
import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { after, describe, test } from 'node:test'
import pg from 'pg'
import { type Wire, wireOf } from '../../../src/lib/pg/protocol.ts'
import { freshDatabase } from '../../support/postgres.ts'

const USERS: Record<string, string> = {
  parse: 'protocol.ts sends a statement to prepare with it',
  bind: 'protocol.ts sends the parameters of a statement with it',
  describe: 'protocol.ts requests the names of columns with it',
  execute: 'protocol.ts runs a statement with it, up to a number of rows',
  sync: 'protocol.ts ends a batch with it',
  sendCopyFail: 'protocol.ts refuses COPY with it',
  attachListeners: 'pipelines.ts replaces it to take rows before the parser of pg does',
}

/** A query that notes which of its methods pg calls, and sends what `sends` sends. */
class Noting extends pg.Query {
  readonly called: string[] = []
  readonly done: Promise<void>
  readonly #sends: (wire: Wire) => void
  #end!: () => void

  constructor(sends: (wire: Wire) => void) {
    super('')
    this.#sends = sends
    this.done = new Promise((resolve) => {
      this.#end = resolve
    })
    const receives = [
      ...['handleRowDescription', 'handleDataRow', 'handleCommandComplete', 'handleEmptyQuery'],
      ...['handlePortalSuspended', 'handleCopyInResponse', 'handleError', 'handleReadyForQuery'],
    ]
    for (const method of receives) Object.assign(this, { [method]: (...given: unknown[]) => this.#note(method, given) })
  }

  requiresPreparation(): boolean {
    this.called.push('requiresPreparation')
    return true
  }

  prepare(wire: Wire): void {
    this.called.push('prepare')
    this.#sends(wire)
    wire.sync()
  }

  #note(method: string, given: unknown[]): void {
    this.called.push(method)
    if (method === 'handleCopyInResponse') (given[0] as Wire).sendCopyFail('refused')
    if (method === 'handleError' || method === 'handleReadyForQuery') this.#end()
  }
}

const statement =
  (text: string, rows = 0, name?: string) =>
  (wire: Wire) => {
    wire.parse({ name, text })
    wire.bind({ statement: name, values: [], valueMapper: (value) => value })
    wire.describe({ type: 'P', name: '' })
    wire.execute({ rows })
  }

const database = await freshDatabase()
const client = new pg.Client({ connectionString: database.url })
await client.connect()
after(async () => {
  await client.end()
  await database.drop()
})

describe('pg', () => {
  for (const [method, use] of Object.entries(USERS)) {
    test(`has connection.${method}()`, () => {
      const found = wireOf(client)[method as keyof Wire]
      assert.equal(typeof found, 'function', `connection.${method}() of pg is missing: ${use}.`)
    })
  }

  test('has connection.stream, a stream that can be corked', () => {
    const { stream } = wireOf(client)
    assert.equal(typeof stream?.cork, 'function', 'connection.stream of pg is no stream: outbox.ts corks it.')
    assert.equal(typeof stream.destroy, 'function', 'connection.stream of pg is no stream: liveness.ts destroys it.')
  })

  test('has utils.prepareValue(), which turns parameters into text', () => {
    const { utils } = pg as unknown as { utils?: { prepareValue?(value: unknown): unknown } }
    const written = [1n, true, null, ['a', null]].map((value) => utils?.prepareValue?.(value))
    const changed = 'utils.prepareValue() of pg has changed: protocol.ts sends parameters as it writes them.'
    assert.deepEqual(written, ['1', 'true', null, '{"a",NULL}'], changed)
  })

  const CALLS: [what: string, sends: (wire: Wire) => void, calls: string][] = [
    ['a statement with rows', statement('select 1'), 'handleRowDescription handleDataRow handleCommandComplete'],
    [
      'a limited statement',
      statement('values (1), (2)', 1),
      'handleRowDescription handleDataRow handlePortalSuspended',
    ],
    ['an empty statement', statement(''), 'handleEmptyQuery'],
  ]
  for (const [what, sends, calls] of CALLS) {
    test(`calls the methods of a query for ${what}`, async () => {
      const query = new Noting(sends)
      client.query(query)
      await query.done
      const changed = `pg calls other methods of a query for ${what}: the class Batch of protocol.ts has to follow.`
      assert.equal(query.called.join(' '), `requiresPreparation prepare ${calls} handleReadyForQuery`, changed)
    })
  }

  test('calls handleCopyInResponse with the connection, and handleError after sendCopyFail', async () => {
    const copying = new pg.Client({ connectionString: database.url })
    await copying.connect()
    await copying.query('create temp table copied (n int)')
    const query = new Noting(statement('copy copied from stdin'))
    copying.query(query)
    await query.done
    // The query is not over for pg, so that this breaks the connection.
    await copying.end()
    const changed = 'pg handles COPY otherwise: protocol.ts could no longer refuse it.'
    assert.equal(query.called.join(' '), 'requiresPreparation prepare handleCopyInResponse handleError', changed)
  })

  test('keeps the texts of prepared statements by their names', async () => {
    const wire = wireOf(client)
    const query = new Noting(statement('select 2', 0, 'two'))
    Object.assign(query, { name: 'two', text: 'select 2' })
    wire.submittedNamedStatements['two'] = 'select 2'
    client.query(query)
    await query.done
    const changed = 'of pg has changed: protocol.ts knows by it what is prepared on a connection.'
    assert.equal(wire.parsedStatements['two'], 'select 2', `connection.parsedStatements ${changed}`)
    assert.equal(wire.submittedNamedStatements['two'], undefined, `connection.submittedNamedStatements ${changed}`)
  })

  test('sends queries without waiting with the option `pipeline`', async () => {
    const pipelined = new pg.Client({ connectionString: database.url, pipeline: true } as pg.ClientConfig)
    await pipelined.connect()
    const sent: number[] = []
    const sleep = (n: number) => (wire: Wire) => {
      sent.push(n)
      statement('select pg_sleep(0.1)')(wire)
    }
    const queries = [1, 2].map((n) => new Noting(sleep(n)))
    for (const query of queries) pipelined.query(query)
    const before = [...sent]
    await Promise.all(queries.map(({ done }) => done))
    await pipelined.end()
    assert.deepEqual(
      before,
      [1, 2],
      'The option `pipeline` of pg has changed: reads of pipelines.ts wait for each other.',
    )
  })

  test('attaches its listeners to any emitter of `data`, and handles rows by the event `dataRow`', async () => {
    const wire = wireOf(client)
    const changed = 'The events of a connection of pg have changed: pipelines.ts hands rows over by `dataRow`.'
    assert.ok(wire.listenerCount('dataRow') > 0, changed)
    // Without a query pg throws.
    assert.throws(() => wire.emit('dataRow', { fields: [] }), /dataRow/, changed)
    const other = new EventEmitter()
    wire.attachListeners(other)
    const attached = 'connection.attachListeners() of pg has changed: pipelines.ts gives it the bytes between rows.'
    assert.ok(other.listenerCount('data') > 0, attached)
  })
})
