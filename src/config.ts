// The only reader of the environment: every setting with its default and its rule; all mistakes are reported at once.
import { resolve } from 'node:path'
import { type OidcSettings, readOidc } from './core/tenants/oidc-settings.ts'
import { UsageError } from './lib/errors.ts'
import type { ListenerBounds } from './lib/http/bounds.ts'
import { readProxies, type TrustedProxies } from './lib/http/client-address.ts'
import { type MailSettings, readDashboardUrl, readMail } from './lib/mail-settings.ts'
import { mistakesIn } from './lib/pg/database-url.ts'
import { masterKeyFrom } from './lib/secrets.ts'
import { hasUnreadFile, settingReader } from './lib/setting-files.ts'

export interface ShardDashboard {
  name: string
  url: string
}

export interface Config {
  host: string
  port: number
  adminHost: string
  adminPort: number
  /** Host names that the operator's listener accepts, besides addresses and localhost. */
  adminHostNames: string[]
  /** Where people sign in to the dashboard; undefined for operator keys only. */
  oidc: OidcSettings | undefined
  /** Where operators open the dashboard; undefined: messages have no links. */
  dashboardUrl: string | undefined
  /** The server that sends e-mails; undefined: none are sent. */
  mail: MailSettings | undefined
  /** Where exchange rates are fetched from; undefined: they are loaded by hand. */
  ratesUrl: string | undefined
  /** The dashboards of all shards, to be linked to each other. */
  shardDashboards: ShardDashboard[]
  dataDir: string
  /** Undefined for the embedded PostgreSQL in `dataDir`. */
  databaseUrl: string | undefined
  /** The address of the database itself, if `databaseUrl` is that of a pooler in transaction mode. */
  directDatabaseUrl: string | undefined
  /** Undefined for as many as fit the number of workers. */
  databaseConnections: number | undefined
  statementTimeoutMs: number
  /** A streaming replica for reads of the data API. */
  readDatabaseUrl: string | undefined
  readMaxLagMs: number
  /** 32 bytes; undefined if it is kept in `dataDir`, which only the embedded database allows. */
  masterKey: Buffer | undefined
  /** Whether the name `Service-Secret` is compared by case, as the specification says. */
  secretHeaderCase: 'exact' | 'any'
  erasureLedger: string
  simulatorUrl: string | undefined
  /** An address in place of Stripe's API, for tests and the demo. */
  stripeApiUrl: string | undefined
  /** The same for the other providers, by psp. */
  apiUrls: Readonly<Partial<Record<string, string>>>
  providerTimeoutMs: number
  webhookAllowPrivate: boolean
  logLevel: string
  /** The rate limit of a key for which none is set; a rate of 0 is no limit. */
  rateLimit: { rate: number; burst: number }
  /** Refusals per second of an address that sends no valid key. */
  unauthorizedRate: number
  /** The server that `tundish sync` copies, and the key of the project. */
  syncUrl: string | undefined
  syncKey: string | undefined
  trustedProxies: TrustedProxies
  maxConcurrentPerKey: number
  /** The bounds of the public listener. */
  bounds: ListenerBounds
}

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']

/** Reads the settings, or throws one `UsageError` that names every mistake. Empty counts as not set. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  const mistakes: string[] = []
  const text = settingReader(env, mistakes)

  function integer(name: string, fallback: number, min: number, max: number): number {
    const value = text(name) ?? String(fallback)
    const number = /^[0-9]{1,9}$/.test(value) ? Number(value) : Number.NaN
    if (number >= min && number <= max) return number
    mistakes.push(`${name} must be a whole number from ${min} to ${max}, got "${value}".`)
    return fallback
  }

  function choice<T extends string>(name: string, fallback: T, choices: readonly T[]): T {
    const value = text(name) ?? fallback
    if ((choices as readonly string[]).includes(value)) return value as T
    mistakes.push(`${name} must be one of ${choices.join(', ')}, got "${value}".`)
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

  function databaseUrl(name: string): string | undefined {
    const value = url(name, ['postgres:', 'postgresql:'])
    if (value?.startsWith('postgres')) mistakes.push(...mistakesIn(value).map((mistake) => `${name} ${mistake}`))
    return value
  }

  function simulatorUrl(): string | undefined {
    const value = url('SIMULATOR_URL', ['http:', 'https:'])
    // An address that is not a URL would fail at each charge, and leave it in progress.
    if (value?.startsWith('http') && !URL.canParse(value))
      mistakes.push('SIMULATOR_URL must be an address such as http://127.0.0.1:8090.')
    return value
  }

  function apiUrl(name: string, value: string | undefined, why = 'it gets secret keys'): string | undefined {
    if (value?.startsWith('http') && !URL.canParse(value))
      mistakes.push(`${name} must be an address such as http://127.0.0.1:8091.`)
    else if (value?.startsWith('http:') && !['127.0.0.1', '[::1]', 'localhost'].includes(new URL(value).hostname))
      mistakes.push(`${name} must begin with https:// unless it is an address of this machine: ${why}.`)
    return value
  }

  function masterKey(): Buffer | undefined {
    const value = text('MASTER_KEY')
    const key = value === undefined ? undefined : masterKeyFrom(value)
    if (value !== undefined && !key) {
      mistakes.push('MASTER_KEY must be 32 bytes in base64: make one with "openssl rand -base64 32".')
    }
    return key
  }

  function proxies(): TrustedProxies {
    const read = readProxies(text('TRUST_PROXY') ?? '')
    if (!read) mistakes.push('TRUST_PROXY must be addresses and networks such as 10.0.0.0/8, ::1.')
    return read ?? { has: () => false }
  }

  function hostNames(): string[] {
    const names = (text('ADMIN_HOST_NAMES') ?? '').split(',').map((name) => name.trim())
    if (names.every((name) => /^[A-Za-z0-9._-]*$/.test(name))) return names.filter((name) => name !== '')
    mistakes.push(
      'ADMIN_HOST_NAMES must be host names without scheme and port, such as tundish.internal, admin.example.com.',
    )
    return []
  }

  function shardDashboards(): ShardDashboard[] {
    const parts = (text('SHARD_DASHBOARDS') ?? '').split(',').map((part) => part.trim())
    return parts.flatMap((part) => {
      if (part === '') return []
      const [, name, url] = /^([^=]+?)\s*=\s*(https?:\/\/.+)$/.exec(part) ?? []
      if (name !== undefined && URL.canParse(url!)) return [{ name, url: new URL(url!).origin }]
      mistakes.push(
        `SHARD_DASHBOARDS must be names with addresses, such as a=https://a.tundish.internal, b=https://b.tundish.internal, got "${part}".`,
      )
      return []
    })
  }

  const dataDir = resolve(text('DATA_DIR') ?? './data')
  const port = integer('PORT', 8080, 0, 65535)
  const config: Config = {
    host: text('HOST') ?? '127.0.0.1',
    port,
    adminHost: text('ADMIN_HOST') ?? '127.0.0.1',
    // One setting moves both listeners.
    adminPort: integer('ADMIN_PORT', port === 0 ? 0 : port + 1, 0, 65535),
    adminHostNames: hostNames(),
    oidc: readOidc(
      {
        issuer: text('OIDC_ISSUER'),
        clientId: text('OIDC_CLIENT_ID'),
        clientSecret: text('OIDC_CLIENT_SECRET'),
        roles: text('OIDC_ROLES'),
        claim: text('OIDC_CLAIM'),
        scope: text('OIDC_SCOPE'),
        prompt: text('OIDC_PROMPT'),
      },
      mistakes,
    ),
    dashboardUrl: readDashboardUrl(text('DASHBOARD_URL'), mistakes),
    mail: readMail({ url: text('SMTP_URL'), from: text('SMTP_FROM') }, mistakes),
    ratesUrl: apiUrl('RATES_URL', url('RATES_URL', ['http:', 'https:']), 'amounts are converted by it'),
    shardDashboards: shardDashboards(),
    dataDir,
    databaseUrl: databaseUrl('DATABASE_URL'),
    directDatabaseUrl: databaseUrl('DIRECT_DATABASE_URL'),
    databaseConnections: text('DATABASE_CONNECTIONS') ? integer('DATABASE_CONNECTIONS', 12, 2, 1000) : undefined,
    statementTimeoutMs: integer('STATEMENT_TIMEOUT_MS', 30_000, 100, 3_600_000),
    readDatabaseUrl: databaseUrl('READ_DATABASE_URL'),
    readMaxLagMs: integer('READ_MAX_LAG_MS', 1000, 100, 600_000),
    masterKey: masterKey(),
    secretHeaderCase: choice('SECRET_HEADER_CASE', 'exact', ['exact', 'any']),
    erasureLedger: resolve(text('ERASURE_LEDGER') ?? `${dataDir}/erasures.ndjson`),
    simulatorUrl: simulatorUrl(),
    stripeApiUrl: apiUrl('STRIPE_API_URL', url('STRIPE_API_URL', ['http:', 'https:'])),
    apiUrls: givenOnly({ primer: apiUrl('PRIMER_API_URL', url('PRIMER_API_URL', ['http:', 'https:'])) }),
    providerTimeoutMs: integer('PROVIDER_TIMEOUT_MS', 30_000, 100, 300_000),
    webhookAllowPrivate: choice('WEBHOOK_ALLOW_PRIVATE', 'false', ['true', 'false']) === 'true',
    logLevel: choice('LOG_LEVEL', 'info', LOG_LEVELS),
    rateLimit: {
      rate: integer('RATE_LIMIT', 1000, 0, 1_000_000),
      burst: integer('RATE_LIMIT_BURST', 5000, 1, 10_000_000),
    },
    unauthorizedRate: integer('UNAUTHORIZED_RATE', 10, 1, 1_000_000),
    syncUrl: url('SYNC_URL', ['http:', 'https:']),
    syncKey: text('SYNC_KEY'),
    trustedProxies: proxies(),
    maxConcurrentPerKey: integer('MAX_CONCURRENT_PER_KEY', 1024, 1, 1_000_000),
    bounds: {
      concurrentRequests: integer('MAX_CONCURRENT_REQUESTS', 4096, 1, 1_000_000),
      connections: integer('MAX_CONNECTIONS', 16_384, 1, 1_000_000),
      bodyBytes: integer('MAX_BODY_BYTES', 1024 * 1024, 1024, 100 * 1024 * 1024),
      headerBytes: integer('MAX_HEADER_BYTES', 16 * 1024, 1024, 256 * 1024),
      urlBytes: integer('MAX_URL_BYTES', 12 * 1024, 128, 256 * 1024),
      headersTimeoutMs: integer('HEADERS_TIMEOUT_MS', 10_000, 100, 300_000),
      requestTimeoutMs: integer('REQUEST_TIMEOUT_MS', 30_000, 100, 3_600_000),
      keepAliveTimeoutMs: integer('KEEP_ALIVE_TIMEOUT_MS', 75_000, 100, 3_600_000),
      sendTimeoutMs: integer('SEND_TIMEOUT_MS', 30_000, 100, 3_600_000),
    },
  }
  if (config.bounds.headersTimeoutMs > config.bounds.requestTimeoutMs) {
    mistakes.push('HEADERS_TIMEOUT_MS must not be more than REQUEST_TIMEOUT_MS, which holds for the headers too.')
  }
  if (port !== 0 && config.adminPort === port && config.adminHost === config.host) {
    mistakes.push(`ADMIN_PORT must not be ${port}, which is PORT.`)
  }
  // A new key in place of one whose file cannot be read would decrypt nothing.
  if (config.databaseUrl && text('MASTER_KEY') === undefined && !hasUnreadFile('MASTER_KEY', mistakes)) {
    mistakes.push(
      'MASTER_KEY is required with DATABASE_URL, the same for all processes: make one with "openssl rand -base64 32".',
    )
  }
  if (config.directDatabaseUrl && !config.databaseUrl) {
    mistakes.push('DIRECT_DATABASE_URL needs DATABASE_URL, which then leads through a pooler to the same database.')
  }
  if (config.readDatabaseUrl && !config.databaseUrl) {
    mistakes.push('READ_DATABASE_URL needs DATABASE_URL, the primary that its server replicates.')
  }
  if (mistakes.length > 0) throw new UsageError(mistakes.join('\n'))
  return config
}

function givenOnly(urls: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(Object.entries(urls).filter((one): one is [string, string] => one[1] !== undefined))
}
