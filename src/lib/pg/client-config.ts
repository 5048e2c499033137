// The configuration of all connections to PostgreSQL: address and session settings.
import type { Duplex } from 'node:stream'
import type pg from 'pg'
import { connectionOf } from './hosts.ts'

export interface ConnectionOptions {
  url: string
  /** The address of the database itself, if `url` is that of a pooler in transaction mode. For work that needs a session. */
  directUrl?: string | undefined
  applicationName: string
  statementTimeoutMs?: number
  connectTimeoutMs?: number
  /** Replaces the network socket; used by simulations. */
  stream?: () => Duplex
}

const STATEMENT_TIMEOUT_MS = 30_000

/** The configuration of a connection. */
export function clientConfig(options: ConnectionOptions): pg.ClientConfig {
  const { url, given } = withoutSettings(options.url)
  return {
    ...connectionOf(url),
    application_name: options.applicationName,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 5_000,
    keepAlive: true,
    ...(options.stream && { stream: options.stream }),
    // Values stay text, so that microseconds and decimals keep all digits and no time is spent on parsing.
    types: { getTypeParser: () => (text: string) => text } as unknown as pg.CustomTypesConfig,
    // A pooler does not pass session settings on, so there they are settings of the role: see `setRoleSettings`.
    ...(!options.directUrl && { options: [given, ...asOptions(settingsOf(options))].join(' ') }),
  }
}

/** The settings of every session. */
export function settingsOf({
  statementTimeoutMs,
}: Pick<ConnectionOptions, 'statementTimeoutMs'>): Record<string, string> {
  return {
    TimeZone: 'UTC',
    DateStyle: 'ISO',
    bytea_output: 'hex',
    standard_conforming_strings: 'on',
    jit: 'off',
    // Each statement is written so that one plan is good for all parameters.
    plan_cache_mode: 'force_generic_plan',
    statement_timeout: String(statementTimeoutMs ?? STATEMENT_TIMEOUT_MS),
    lock_timeout: '0',
    idle_in_transaction_session_timeout: '300000',
  }
}

const asOptions = (settings: Record<string, string>) =>
  Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`)

/** The address without its own `options`, which would replace the settings above instead of adding to them. */
function withoutSettings(url: string): { url: string; given: string } {
  const [address, query = ''] = url.split('?', 2) as [string, string?]
  const parameters = new URLSearchParams(query)
  const given = parameters.get('options') ?? ''
  parameters.delete('options')
  return { url: given === '' ? url : `${address}?${parameters}`, given }
}
