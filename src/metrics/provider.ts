// A payment provider with every call measured.
import type { Histogram } from 'prom-client'
import type { Provider } from '../providers/provider.ts'

export function measured(provider: Provider, calls: Histogram<'provider' | 'call' | 'outcome'>): Provider {
  const timed =
    <Asked extends unknown[], Answer extends { outcome: string }>(
      call: string,
      ask: (...asked: Asked) => Promise<Answer>,
    ) =>
    async (...asked: Asked): Promise<Answer> => {
      const end = calls.startTimer({ provider: provider.name, call })
      // What throws is a bug, and has no outcome.
      const answer = await ask(...asked)
      end({ outcome: answer.outcome })
      return answer
    }
  return {
    name: provider.name,
    admits: () => provider.admits(),
    circuitIsOpen: () => provider.circuitIsOpen(),
    isReachable: () => provider.isReachable(),
    charge: timed('charge', (...asked: Parameters<Provider['charge']>) => provider.charge(...asked)),
    lookUp: timed('look_up', (...asked: Parameters<Provider['lookUp']>) => provider.lookUp(...asked)),
    refuse: timed('refuse', (...asked: Parameters<Provider['refuse']>) => provider.refuse(...asked)),
    refund: timed('refund', (...asked: Parameters<Provider['refund']>) => provider.refund(...asked)),
    lookUpRefund: timed('look_up_refund', (...asked: Parameters<Provider['lookUpRefund']>) =>
      provider.lookUpRefund(...asked),
    ),
    refuseRefund: timed('refuse_refund', (...asked: Parameters<Provider['refuseRefund']>) =>
      provider.refuseRefund(...asked),
    ),
    list: (since) => provider.list(since),
    close: () => provider.close(),
  }
}
