// The databases of earlier versions: what is known of each, and loading one into its own database.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { type FreshDatabase, runStatement } from '../support/postgres.ts'

/** The key under which the keys in the files are sealed. */
export const MASTER_KEY = Buffer.alloc(32, 7).toString('base64')

/** What was true of the database when the file was made. */
export interface Kept {
  organizationKey: string
  projectKey: string
  /** The order of `charge`, which was refunded in part. */
  orderId: string
  charge: { external_id: string; amount: string; currency_code: string; idempotency_key: string }
  /** An erased profile. */
  erased: string
  totals: Record<string, number>
  /** The rows of the transaction report. */
  rows: number
}

export const VERSIONS = readdirSync(import.meta.dirname).flatMap((name) => /^(.+)\.sql\.gz$/.exec(name)?.[1] ?? [])

export const keptOf = (version: string): Kept =>
  JSON.parse(readFileSync(join(import.meta.dirname, `${version}.json`), 'utf8'))

let made = 0

/** A database with the schema and the data of a version. */
export async function loadVersion(version: string): Promise<FreshDatabase> {
  const server = process.env['TUNDISH_TEST_DATABASE']!
  const name = `tundish_upgrade_${process.pid}_${++made}`
  await runStatement(server, `create database ${name} template template0`)
  const url = Object.assign(new URL(server), { pathname: `/${name}` }).href
  await runStatement(url, gunzipSync(readFileSync(join(import.meta.dirname, `${version}.sql.gz`))).toString())
  return { url, drop: () => runStatement(server, `drop database if exists ${name} with (force)`) }
}
