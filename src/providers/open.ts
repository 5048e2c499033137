// Opens payment providers, one for each merchant account: for serving, for commands and for the doctor.
import type { Clock } from '../lib/clock.ts'
import { createFreshCache } from '../lib/fresh-cache.ts'
import type { Db } from '../lib/pg/db.ts'
import type { Seal } from '../lib/secrets.ts'
import { type Account, type AccountName, findAccount, listAccounts } from './account.ts'
import { adapters } from './adapters.ts'
import { defaultMaxInFlight } from './guard.ts'
import { EVERY_MERCHANT, type Provider, type Providers } from './provider.ts'
import { SimulatorProvider } from './simulator.ts'
import { Transport } from './transport.ts'

export interface ProvidersOptions {
  db: Db
  clock: Clock
  /** Opens sealed credentials; undefined: the master key is not here, and only the simulator can be used. */
  seal: Seal | undefined
  /** Of every call. */
  deadlineMs: number
  /** undefined: no simulator can be used here. */
  simulatorUrl: string | (() => string) | undefined
  stripeApiUrl?: string | undefined
  stripeSimulatorUrl?: (() => string) | undefined
  /** Wraps each provider that is opened, for metrics. */
  wrap?: (provider: Provider) => Provider
}

export interface OpenProviders extends Providers {
  close(): void
}

/** A provider that is open, and what it was opened with. */
interface Opened {
  organizationId: string
  provider: Provider
  version: string
}

// Accounts of the simulator cost a circuit each; the one that was opened first is closed first.
const MOST_OPEN = 10_000
const SIMULATOR = 'simulator'

/**
 * Credentials are read from the database, at most once a second for each account: new ones are used within a second, by
 * every process. Accounts of the simulator need none; it serves every merchant id.
 */
export function openProviders(options: ProvidersOptions): OpenProviders {
  const { db, clock, seal, wrap = (provider: Provider) => provider } = options
  const accounts = createFreshCache<Account>(clock)
  const opened = new Map<string, Opened>()
  /** The same by organization, asked at every charge. */
  const ofOrganization = new Map<string, Set<Provider>>()
  const simulators = openSimulators(options)

  function keep(place: string, organizationId: string, version: string, open: () => Provider): Provider {
    const known = opened.get(place)
    if (known?.version === version) return known.provider
    retire(place)
    const provider = wrap(open())
    opened.set(place, { organizationId, provider, version })
    const others = ofOrganization.get(organizationId) ?? new Set()
    ofOrganization.set(organizationId, others.add(provider))
    if (opened.size > MOST_OPEN) retire(opened.keys().next().value!)
    return provider
  }

  /** Closes a provider when the calls that it is making have ended. */
  function retire(place: string): void {
    const old = opened.get(place)
    if (!old) return
    opened.delete(place)
    ofOrganization.get(old.organizationId)?.delete(old.provider)
    setTimeout(() => old.provider.close(), options.deadlineMs + 1000).unref()
  }

  function openAccount(account: Account): Provider | undefined {
    const adapter = adapters[account.psp]
    const { clock, deadlineMs, stripeApiUrl, stripeSimulatorUrl } = options
    const open = () => adapter!.open(account, { clock, deadlineMs, stripeApiUrl, stripeSimulatorUrl })
    return adapter && keep(placeOf(account), account.organizationId, account.version, open)
  }

  return {
    async of(organizationId, psp, merchantId) {
      const name = { organizationId, psp, merchantId: merchantId ?? EVERY_MERCHANT }
      const place = placeOf(name)
      if (psp === SIMULATOR)
        return simulators && keep(place, organizationId, '', () => simulators.open(name.merchantId))
      if (!seal || !adapters[psp] || merchantId === null) return undefined
      const account = await accounts.get(place, () => findAccount(db, seal, name))
      if (account) return openAccount(account)
      retire(place)
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

const placeOf = ({ organizationId, psp, merchantId }: AccountName) => JSON.stringify([organizationId, psp, merchantId])

/** The accounts of the simulator share their connections, but neither circuit nor places. */
function openSimulators({ simulatorUrl, clock, deadlineMs, wrap = (provider) => provider }: ProvidersOptions) {
  if (simulatorUrl === undefined) return undefined
  const address = typeof simulatorUrl === 'string' ? () => simulatorUrl : simulatorUrl
  const transport = new Transport(address, 2 * defaultMaxInFlight)
  const open = (merchantId: string) => new SimulatorProvider({ url: address, clock, deadlineMs, merchantId, transport })
  return { open, every: wrap(open(EVERY_MERCHANT)), close: () => transport.close() }
}
