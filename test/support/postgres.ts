// Its own database for each test file: a clone of the migrated template of global-setup.ts. Imports nothing of `src`,
// because the simulation imports this file before it replaces files there.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'

export interface FreshDatabase {
  url: string
  /** Also ends open connections. */
  drop(): Promise<void>
}

// Autovacuum connects to every database now and then, and a template with a connection cannot be copied.
const BUSY = '55006'
const ATTEMPTS = 50

let made = 0

/**
 * An empty database with all migrations, or a copy of another one, which must have no connections. Drop it in an `after`.
 */
export async function freshDatabase(from?: { url: string }): Promise<FreshDatabase> {
  const server = process.env['TUNDISH_TEST_DATABASE']
  const template = from ? new URL(from.url).pathname.slice(1) : process.env['TUNDISH_TEST_TEMPLATE']
  if (!server || !template) throw new Error('No test database: run tests with "npm test" or "npm test -- FILE".')
  const name = `tundish_test_${process.pid}_${++made}`
  await clone(server, template, name)
  const url = Object.assign(new URL(server), { pathname: `/${name}` }).href
  return { url, drop: () => runStatement(server, `drop database if exists ${name} with (force)`) }
}

async function clone(server: string, template: string, name: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await runStatement(server, `create database ${name} template ${template}`)
    } catch (error) {
      if ((error as pg.DatabaseError).code !== BUSY || attempt === ATTEMPTS) throw error
      await sleep(100)
    }
  }
}

/** One statement on its own connection. */
export async function runStatement(url: string, text: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(text)
  } finally {
    await client.end()
  }
}
