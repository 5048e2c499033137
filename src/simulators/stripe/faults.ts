// Decides the fault of a call: by its card's control token, or as requested through the control interface.
import { type Ordered, OrderedFaults } from '../ordered-faults.ts'
import type { Call, Dialect } from './call.ts'
import type { Fault, Stage } from './cards.ts'
import { idOf } from './payment-intents.ts'
import { behaviourOf } from './payment-methods.ts'

export type OrderedFault = Ordered & Pick<Fault, 'kind' | 'ms' | 'permission'>

export class Faults extends OrderedFaults<OrderedFault> {
  readonly #met = new Set<string>()

  /** @param key the idempotency key: a payment that is being created has no id yet */
  of(dialect: Dialect, call: Call, key: string | undefined): Pick<Fault, 'kind' | 'ms' | 'permission'> | undefined {
    return this.take(call) ?? this.#ofCard(dialect, call, key)
  }

  #ofCard(dialect: Dialect, call: Call, key: string | undefined): Fault | undefined {
    const stage = stageOf(call)
    const card = stage && cardOf(dialect, call)
    const fault = card ? behaviourOf(dialect, card).fault : undefined
    if (!fault || fault.stage !== stage) return undefined
    const name = `${stage} ${call.id || key}`
    if (fault.once && this.#met.has(name)) return undefined
    this.#met.add(name)
    return fault
  }
}

function stageOf({ method, path }: Call): Stage | undefined {
  if (method !== 'POST') return undefined
  if (path === '/v1/payment_intents') return 'prepare'
  if (path === '/v1/refunds') return 'refund'
  if (/^\/v1\/payment_intents\/[^/]+\/(confirm|cancel)$/.test(path))
    return path.endsWith('confirm') ? 'confirm' : 'cancel'
  return undefined
}

/** The payment method that a call is about. */
function cardOf({ state }: Dialect, { id, params }: Call): string | undefined {
  const named = params['payment_method']
  if (typeof named === 'string') return named
  const intent = state.find('payment_intent', id || String(params['payment_intent']))
  if (intent)
    return (
      idOf(intent.payment_method) ?? state.find('charge', idOf(intent.latest_charge) ?? '')?.payment_method ?? undefined
    )
  return state.find('charge', String(params['charge']))?.payment_method ?? undefined
}
