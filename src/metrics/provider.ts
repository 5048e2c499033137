// Measures every call to a payment provider.
import type { Histogram } from 'prom-client'
import { aroundCalls } from '../providers/around-calls.ts'
import type { Provider } from '../providers/provider.ts'

/** The same provider; each call is timed by its name and outcome. A call that throws is a bug and is not counted. */
export function measured(provider: Provider, calls: Histogram<'provider' | 'call' | 'outcome'>): Provider {
  return aroundCalls(provider, async (call, run) => {
    const end = calls.startTimer({ provider: provider.name, call })
    const answer = await run()
    end({ outcome: outcomeOf(answer) })
    return answer
  })
}

/** Lists of refunds and disputes have no outcome of their own. */
function outcomeOf(answer: unknown): string {
  return Array.isArray(answer) ? 'listed' : (answer as { outcome: string }).outcome
}
