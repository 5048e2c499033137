// Measures every call to a payment provider.
import type { Histogram } from 'prom-client'
import { aroundCalls } from '../../payments/providers/around-calls.ts'
import type { Provider } from '../../payments/providers/provider.ts'

/** Returns the provider with each call timed, by its name and outcome. A call that throws is a bug and is not counted. */
export function measured(provider: Provider, calls: Histogram<'provider' | 'call' | 'outcome'>): Provider {
  return aroundCalls(provider, async (call, run) => {
    const end = calls.startTimer({ provider: provider.name, call })
    const result = await run()
    end({ outcome: outcomeOf(result) })
    return result
  })
}

/** Lists of refunds and disputes have no outcome. */
function outcomeOf(result: unknown): string {
  return Array.isArray(result) ? 'listed' : (result as { outcome: string }).outcome
}
