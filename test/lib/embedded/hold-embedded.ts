// A program that opens the embedded database of DATA_DIR (argument 1), prints a line, and closes it when its input ends.
import pg from 'pg'
import { openEmbedded } from '../../../src/lib/embedded/embedded.ts'

const say = (what: object) => process.stdout.write(`${JSON.stringify(what)}\n`)
const silent = { info() {}, warn() {} }

try {
  const embedded = await openEmbedded({ dataDir: process.argv[2] ?? '', log: silent, throwaway: true })
  process.on('SIGINT', async () => {
    // Time for the other processes that the signal reached to end.
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
