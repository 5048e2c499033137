// Charges through a provider as billing does, in one step or two, and keeps the handles of prepared payments.
import type { ChargeRequest, Provider, Reference } from '../../src/payments/providers/provider.ts'

export type Charging = ReturnType<typeof charging>

export function charging(provider: Provider) {
  const handles = new Map<string, string>()
  const withHandle = <Named extends Reference>(reference: Named): Named => ({
    ...reference,
    handle: handles.get(reference.key) ?? null,
  })
  async function inTwoSteps(request: ChargeRequest, signal?: AbortSignal) {
    const prepared = await provider.prepare!(request, signal)
    if (prepared.outcome !== 'prepared') return prepared
    handles.set(request.key, prepared.handle)
    return provider.confirm!({ ...request, handle: prepared.handle }, signal)
  }
  return {
    provider,
    charge: (request: ChargeRequest, signal?: AbortSignal) =>
      provider.charge ? provider.charge(request, signal) : inTwoSteps(request, signal),
    lookUp: (reference: Reference) => provider.lookUp(withHandle(reference)),
    refuse: (reference: Reference) => provider.refuse(withHandle(reference)),
    withHandle,
  }
}
