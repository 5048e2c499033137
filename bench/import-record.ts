// Records an import as a script for psql: its statements, and its rows in files for COPY.
import { appendFileSync, createReadStream, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { importRecords } from '../src/data/ingest/load.ts'
import type { Db } from '../src/lib/pg/db.ts'
import { PROJECT } from './generate.ts'
import type { Rig } from './rig.ts'

/** Imports the file once in this process, and returns the path of the script. */
export async function recordImport({ app, folder }: Rig, file: string): Promise<string> {
  const lines: string[] = []
  const copied = new Set<string>()
  /** The first batch of a table adds a line to the script; all batches are appended to the table's file. */
  const noteCopy = (text: string, batch: Buffer) => {
    const [, table, columns] = /copy (\w+) (\(.*?\)|) ?from stdin/i.exec(text)!
    const rows = join(folder, `${table}.copy`)
    if (!copied.has(table!)) {
      copied.add(table!)
      writeFileSync(rows, '')
      lines.push(`\\copy ${table} ${columns} from '${rows}' (encoding 'UTF8')`)
    }
    appendFileSync(rows, batch)
  }
  const db: Db = { ...app.db, connect: async () => watched(await app.db.connect(), lines, noteCopy) }
  const source = { name: 'records', stream: () => createReadStream(file) }
  await importRecords({ db, log: app.log }, { projectId: PROJECT }, [source])
  const script = join(folder, 'import.sql')
  writeFileSync(script, `${SETTINGS}\n${lines.join('\n')}\n`)
  return script
}

// The settings of our connections.
const SETTINGS = 'set jit = off; set timezone = UTC;'

type Connection = Awaited<ReturnType<Db['connect']>>
interface Copying {
  text: string
  end(batch: Buffer): unknown
}

function watched(connection: Connection, lines: string[], noteCopy: (text: string, batch: Buffer) => void): Connection {
  const { client, query } = connection
  const ask = client.query.bind(client) as (given: unknown, ...more: unknown[]) => unknown
  // The arguments after the statement are its parameters and callback.
  client.query = ((given: string | Copying, ...more: unknown[]) => {
    const copying = ask(given, ...more) as Copying
    if (typeof given === 'string' || typeof given.end !== 'function') return copying
    const end = copying.end.bind(copying)
    copying.end = (batch) => {
      noteCopy(given.text, batch)
      return end(batch)
    }
    return copying
  }) as typeof client.query
  return {
    ...connection,
    query: (statement, params) => {
      const text = typeof statement === 'string' ? statement : statement.text
      // Statements with parameters, such as those for locks, do not write records.
      if (!params || params.length === 0) lines.push(`${text.trim().replaceAll(/\s+/g, ' ')};`)
      return query(statement, params)
    },
  }
}
