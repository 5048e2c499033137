// Opens one provider for each merchant account. The server, the commands and the doctor all open providers here.
import type { Clock } from '../../lib/clock.ts'
import { createFreshCache } from '../../lib/fresh-cache.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Seal } from '../../lib/secrets.ts'
import { type Account, type AccountName, findAccount, listAccounts } from './account.ts'
import { type ApiUrls, adapters, type SimulatorUrls } from './adapters.ts'
import { defaultMaxInFlight } from './guard.ts'
import { EVERY_MERCHANT, type Provider, type Providers } from './provider.ts'
import { SimulatorProvider } from './simulator.ts'
import { Transport } from './transport.ts'

export interface ProvidersOptions {
  db: Db
  clock: Clock
  /** Decrypts credentials. Without it, because the master key is missing, only the simulator can be used. */
  seal: Seal | undefined
  /** The deadline of each call. */
  deadlineMs: number
  /** The address of the simulator; undefined if no simulator may be used. */
  simulatorUrl: string | (() => string) | undefined
  stripeApiUrl?: string | undefined
  simulatorUrls?: SimulatorUrls | undefined
  /** By psp: other addresses of the other providers' APIs, for tests and the demo. */
  apiUrls?: ApiUrls | undefined
  /** Wraps each opened provider, for metrics. */
  wrap?: (provider: Provider) => Provider
}

export interface OpenProviders extends Providers {
  close(): void
}

/** An open provider, its organization, and the version of the account that it was opened with. */
interface Opened {
  organizationId: string
  provider: Provider
  version: string
}

// Bounds the memory, because the simulator accepts any merchant id. The provider that was opened first is closed first.
const MAX_OPEN = 10_000
const SIMULATOR = 'simulator'

/**
 * Credentials are read from the database at most once a second for each account, so every process uses new ones within a
 * second. Accounts of the simulator need no credentials; it serves every merchant id.
 */
export function openProviders(options: ProvidersOptions): OpenProviders {
  const { db, clock, seal, wrap = (provider: Provider) => provider } = options
  const accounts = createFreshCache<Account>(clock)
  const opened = new Map<string, Opened>()
  /** The open providers of each organization; every charge looks them up. */
  const ofOrganization = new Map<string, Set<Provider>>()
  const simulators = openSimulators(options)

  /** Returns the open provider of an account, or opens it. A new version of the account replaces the provider. */
  function getOrOpen(account: string, organizationId: string, version: string, open: () => Provider): Provider {
    const known = opened.get(account)
    if (known?.version === version) return known.provider
    closeLater(account)
    const provider = wrap(open())
    opened.set(account, { organizationId, provider, version })
    const others = ofOrganization.get(organizationId) ?? new Set()
    ofOrganization.set(organizationId, others.add(provider))
    if (opened.size > MAX_OPEN) closeLater(opened.keys().next().value!)
    return provider
  }

  /** Stops using a provider, and closes it when its running calls have reached their deadline. */
  function closeLater(account: string): void {
    const old = opened.get(account)
    if (!old) return
    opened.delete(account)
    ofOrganization.get(old.organizationId)?.delete(old.provider)
    setTimeout(() => old.provider.close(), options.deadlineMs + 1000).unref()
  }

  function openAccount(account: Account): Provider | undefined {
    const adapter = adapters[account.psp]
    const { clock, deadlineMs, stripeApiUrl, simulatorUrls, apiUrls } = options
    const open = () => adapter!.open(account, { clock, deadlineMs, stripeApiUrl, simulatorUrls, apiUrls })
    return adapter && getOrOpen(keyOf(account), account.organizationId, account.version, open)
  }

  return {
    async of(organizationId, psp, merchantId) {
      const name = { organizationId, psp, merchantId: merchantId ?? EVERY_MERCHANT }
      const key = keyOf(name)
      if (psp === SIMULATOR)
        return simulators && getOrOpen(key, organizationId, '', () => simulators.open(name.merchantId))
      if (!seal || !adapters[psp] || merchantId === null) return undefined
      const account = await accounts.get(key, () => findAccount(db, seal, name))
      if (account) return openAccount(account)
      closeLater(key)
      return undefined
    },
    opened: (organizationId) =>
      organizationId === undefined
        ? [...opened.values()].map(({ provider }) => provider)
        : (ofOrganization.get(organizationId) ?? []),
    async all() {
      const connected = seal ? await listAccounts(db, seal, Object.keys(adapters)) : []
      const found = connected.flatMap((account) => {
        const provider = openAccount(account)
        return provider ? [{ organizationId: account.organizationId, provider }] : []
      })
      return simulators ? [{ organizationId: null, provider: simulators.every }, ...found] : found
    },
    close() {
      for (const { provider } of opened.values()) provider.close()
      opened.clear()
      simulators?.close()
    },
  }
}

const keyOf = ({ organizationId, psp, merchantId }: AccountName) => JSON.stringify([organizationId, psp, merchantId])

/** The accounts of the simulator share their connections; each has its own circuit breaker and concurrency limit. */
function openSimulators({ simulatorUrl, clock, deadlineMs, wrap = (provider) => provider }: ProvidersOptions) {
  if (simulatorUrl === undefined) return undefined
  const address = typeof simulatorUrl === 'string' ? () => simulatorUrl : simulatorUrl
  const transport = new Transport(address, 2 * defaultMaxInFlight)
  const open = (merchantId: string) => new SimulatorProvider({ url: address, clock, deadlineMs, merchantId, transport })
  return { open, every: wrap(open(EVERY_MERCHANT)), close: () => transport.close() }
}
