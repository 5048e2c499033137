// npm run db [-- "select 1"]: SQL in the embedded database of DATA_DIR, or that of DATABASE_URL; psql, if it is installed.
import { spawn, spawnSync } from 'node:child_process'
import { createInterface } from 'node:readline/promises'
import type pg from 'pg'
import { table } from '../src/cli/commands/text.ts'
import { readConfig } from '../src/config.ts'
import { openEmbedded } from '../src/lib/embedded/embedded.ts'
import { Client } from '../src/lib/pg/client.ts'

const TABLES = `select table_name from information_schema.tables where table_schema = 'public' order by 1`
const COLUMNS = `select column_name, data_type, is_nullable, column_default from information_schema.columns
  where table_schema = 'public' and table_name = $1 order by ordinal_position`

const config = readConfig(process.env)
const silent = { info() {}, warn: (message: string) => void process.stderr.write(`${message}\n`) }
const embedded = config.databaseUrl ? undefined : await openEmbedded({ dataDir: config.dataDir, log: silent })
const url = config.databaseUrl ?? embedded!.url
const statement = process.argv.slice(2).join(' ')
try {
  process.exitCode = hasPsql() ? await psql() : await ask()
} finally {
  await embedded?.close()
}

function hasPsql(): boolean {
  return spawnSync('psql', ['--version'], { stdio: 'ignore' }).status === 0
}

/** The address goes by the environment of the child, because arguments can be read by every user of the machine. */
function psql(): Promise<number> {
  const { searchParams, username, password, hostname, port, pathname } = new URL(url)
  const env = {
    ...process.env,
    PGHOST: searchParams.get('host') ?? hostname,
    PGPORT: searchParams.get('port') ?? (port || '5432'),
    PGUSER: decodeURIComponent(username),
    PGPASSWORD: decodeURIComponent(password),
    PGDATABASE: decodeURIComponent(pathname.slice(1)),
  }
  // Ctrl-C is psql's: it cancels a statement.
  process.on('SIGINT', () => {})
  const child = spawn('psql', statement === '' ? [] : ['--command', statement], { env, stdio: 'inherit' })
  return new Promise((resolve) => child.on('close', (code) => resolve(code ?? 1)))
}

/** The same for a machine without psql: a statement ends with a semicolon; `\d` lists tables, `\d NAME` columns, `\q` ends. */
async function ask(): Promise<number> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    if (statement !== '') return (await show(client, statement)) ? 0 : 1
    const terminal = createInterface({ input: process.stdin, output: process.stdout, prompt: 'tundish=# ' })
    let text = ''
    let isClosed = false
    terminal.on('close', () => {
      isClosed = true
    })
    terminal.prompt()
    for await (const line of terminal) {
      text = text === '' ? line.trim() : `${text}\n${line}`
      if (text === '\\q') break
      if (text.startsWith('\\d')) await describe(client, text.slice(2).trim())
      else if (text.endsWith(';')) await show(client, text)
      else if (text !== '') continue
      text = ''
      // The end of a pipe closes it before its last lines are read.
      if (!isClosed) terminal.prompt()
    }
    return 0
  } finally {
    await client.end()
  }
}

function describe(client: pg.Client, name: string): Promise<boolean> {
  return name === '' ? show(client, TABLES) : show(client, COLUMNS, [name])
}

/** Prints the rows, or the sentence of PostgreSQL. */
async function show(client: pg.Client, text: string, values: string[] = []): Promise<boolean> {
  try {
    const { rows, rowCount, command } = await client.query(text, values)
    process.stdout.write(rows.length > 0 ? `${table(rows)}\n` : `${command} ${rowCount ?? ''}\n`)
    return true
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`)
    return false
  }
}
