// The only reader of the environment: every setting with its default and its rule; all mistakes are reported at once.
import { resolve } from 'node:path'
import { UsageError } from './lib/errors.ts'

export interface Config {
  host: string
  port: number
  adminHost: string
  adminPort: number
  dataDir: string
  /** Undefined: the embedded PostgreSQL in `dataDir`. */
  databaseUrl: string | undefined
  databaseConnections: number
  /** 32 bytes; undefined: kept in `dataDir`, which only the embedded database allows. */
  masterKey: Buffer | undefined
  /** Whether the name `Service-Secret` is compared by case, as the specification says. */
  secretHeaderCase: 'exact' | 'any'
  erasureLedger: string
  simulatorUrl: string | undefined
  providerTimeoutMs: number
  webhookAllowPrivate: boolean
  logLevel: string
}

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']

/** Reads the settings, or throws one `UsageError` that names every mistake. Empty counts as not set. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  const mistakes: string[] = []
  const text = (name: string) => env[name] || undefined

  function integer(name: string, fallback: number, least: number, most: number): number {
    const value = text(name) ?? String(fallback)
    const number = /^[0-9]{1,9}$/.test(value) ? Number(value) : Number.NaN
    if (number >= least && number <= most) return number
    mistakes.push(`${name} must be a whole number from ${least} to ${most}, not "${value}".`)
    return fallback
  }

  function choice<T extends string>(name: string, fallback: T, choices: readonly T[]): T {
    const value = text(name) ?? fallback
    if ((choices as readonly string[]).includes(value)) return value as T
    mistakes.push(`${name} must be one of ${choices.join(', ')}, not "${value}".`)
    return fallback
  }

  function url(name: string, protocols: string[]): string | undefined {
    const value = text(name)
    // The value is not repeated: a database address holds a password.
    if (value && !protocols.some((protocol) => value.startsWith(`${protocol}//`))) {
      mistakes.push(`${name} must begin with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}.`)
    }
    return value
  }

  function masterKey(): Buffer | undefined {
    const value = text('MASTER_KEY')
    const key = value === undefined ? undefined : Buffer.from(value, 'base64')
    if (key && (key.length !== 32 || key.toString('base64').replace(/=+$/, '') !== value!.replace(/=+$/, ''))) {
      mistakes.push('MASTER_KEY must be 32 bytes in base64: make one with "openssl rand -base64 32".')
    }
    return key
  }

  const dataDir = resolve(text('DATA_DIR') ?? './data')
  const config: Config = {
    host: text('HOST') ?? '127.0.0.1',
    port: integer('PORT', 8080, 0, 65535),
    adminHost: text('ADMIN_HOST') ?? '127.0.0.1',
    adminPort: integer('ADMIN_PORT', 8081, 0, 65535),
    dataDir,
    databaseUrl: url('DATABASE_URL', ['postgres:', 'postgresql:']),
    databaseConnections: integer('DATABASE_CONNECTIONS', 12, 2, 1000),
    masterKey: masterKey(),
    secretHeaderCase: choice('SECRET_HEADER_CASE', 'exact', ['exact', 'any']),
    erasureLedger: resolve(text('ERASURE_LEDGER') ?? `${dataDir}/erasures.ndjson`),
    simulatorUrl: url('SIMULATOR_URL', ['http:', 'https:']),
    providerTimeoutMs: integer('PROVIDER_TIMEOUT_MS', 30_000, 100, 300_000),
    webhookAllowPrivate: choice('WEBHOOK_ALLOW_PRIVATE', 'false', ['true', 'false']) === 'true',
    logLevel: choice('LOG_LEVEL', 'info', LOG_LEVELS),
  }
  if (config.databaseUrl && !config.masterKey) {
    mistakes.push(
      'MASTER_KEY is required with DATABASE_URL, the same for all processes: make one with "openssl rand -base64 32".',
    )
  }
  if (mistakes.length > 0) throw new UsageError(mistakes.join('\n'))
  return config
}
