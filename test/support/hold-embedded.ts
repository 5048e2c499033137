// A program on an embedded database, for tests: opens DATA_DIR (argument 1), says so in one line, and leaves at the end of its input.
import pg from 'pg'
import { openEmbedded } from '../../src/lib/embedded/embedded.ts'

const say = (what: object) => process.stdout.write(`${JSON.stringify(what)}\n`)
const silent = { info() {}, warn() {} }

try {
  const embedded = await openEmbedded({ dataDir: process.argv[2] ?? '', log: silent, throwaway: true })
  process.on('SIGINT', async () => {
    // Whatever else the signal reached has had time to end.
    await new Promise((resolve) => setTimeout(resolve, 300))
    const client = new pg.Client({ connectionString: embedded.url })
    await client.connect()
    const { rows } = await client.query('select 1 as one')
    await client.end()
    say({ afterSignal: rows[0].one })
  })
  process.stdin.on('end', () => embedded.close()).resume()
  say({ url: embedded.url, notice: embedded.notice })
} catch (error) {
  const { name, message } = error as Error
  say({ error: (error as object).constructor.name, name, message })
}
