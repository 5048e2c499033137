// Loaded into every process of a test run (node --import): notes each statement that is sent, and the file it comes from.
// Plain JavaScript, since the launcher's own node has to load it too.
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'

const folder = process.env['STATEMENTS_FOLDER']
// The launcher's own node may be too old for TypeScript, and sends nothing.
if (folder && Number(process.versions.node.split('.')[0]) >= 24) {
  await noteStatements(join(folder, `${process.pid}.ndjson`))
}

async function noteStatements(file) {
  const known = new Set()
  Error.stackTraceLimit = 60
  const note = (text) => {
    if (!text) return
    const line = `${JSON.stringify({ text, origin: originOf(new Error().stack ?? '') })}\n`
    if (!known.has(line)) appendFileSync(file, line)
    known.add(line)
  }
  const send = pg.Client.prototype.query
  pg.Client.prototype.query = function query(...args) {
    const [asked] = args
    note(typeof asked === 'string' ? asked : asked?.text)
    return send.apply(this, args)
  }
  // Statements that are sent together are one query of pg: they are noted as they are added.
  const { Batch } = await import('../../../src/lib/pg/protocol.ts')
  const { add } = Batch.prototype
  Batch.prototype.add = function addNoted(query) {
    note(query.text)
    return add.call(this, query)
  }
}

/** The first frame that is neither ours for reaching PostgreSQL nor a package's. */
function originOf(stack) {
  for (const line of stack.split('\n').slice(1)) {
    const [, place] = /\/((?:src|test|bench|scripts)\/[^:?]+\.ts)/.exec(line) ?? []
    if (place === undefined || place.includes('conformance/statements')) continue
    if (/^src\/lib\/(pg\/|batching|fair-queue)/.test(place)) continue
    return place.startsWith('src/') ? place : 'test'
  }
  return ''
}
