// Loads the payment providers; for a short command at their first use, because the adapters would be a third of its start.
import type { OpenProviders, ProvidersOptions } from './open.ts'

/** Short commands are those that are not measured. */
export async function loadProviders(
  { unmeasured }: { unmeasured?: boolean },
  options: ProvidersOptions,
): Promise<OpenProviders> {
  const open = async () => (await import('./open.ts')).openProviders(options)
  return unmeasured ? onDemand(open) : open()
}

function onDemand(open: () => Promise<OpenProviders>): OpenProviders {
  let opening: Promise<OpenProviders> | undefined
  let providers: OpenProviders | undefined
  const opened = () => {
    opening ??= open().then((all) => {
      providers = all
      return all
    })
    return opening
  }
  return {
    of: async (...account) => (await opened()).of(...account),
    opened: (organizationId) => providers?.opened(organizationId) ?? [],
    all: async () => (await opened()).all(),
    close: () => providers?.close(),
  }
}
