// Wraps each call to a provider, for metrics, limits and tests, and lists the methods that count as calls.
import type { Provider } from './provider.ts'

/** The calls that return an outcome, by the names they have in metrics and in the log of provider calls. */
const CALLS = {
  prepare: 'prepare',
  confirm: 'confirm',
  charge: 'charge',
  capture: 'capture',
  lookUp: 'look_up',
  refuse: 'refuse',
  findByKey: 'find_by_key',
  refund: 'refund',
  lookUpRefund: 'look_up_refund',
  refuseRefund: 'refuse_refund',
  refundsOf: 'refunds_of',
  disputesOf: 'disputes_of',
} as const

export type Call = (typeof CALLS)[keyof typeof CALLS]

/** Runs one call. It must return what `run` returns. */
export type Around = <T>(call: Call, run: () => Promise<T>) => Promise<T>

/** Returns the provider with each call run by `around`. Optional methods that the provider lacks stay absent. */
export function aroundCalls(provider: Provider, around: Around): Provider {
  return new Proxy(provider, {
    get(target, name) {
      const member = Reflect.get(target, name, target) as unknown
      if (typeof member !== 'function') return member
      const call = isCall(name) ? CALLS[name] : undefined
      if (call === undefined) return member.bind(target)
      return (...given: unknown[]) => around(call, () => member.apply(target, given))
    },
  })
}

function isCall(name: string | symbol): name is keyof typeof CALLS {
  return typeof name === 'string' && Object.hasOwn(CALLS, name)
}
