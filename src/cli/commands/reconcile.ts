// tundish reconcile: compares orders and refunds with the payment providers, and settles those that are missing here.
import type { Command } from 'commander'
import { Refusal, UsageError } from '../../lib/errors.ts'
import { billingContext } from '../../payments/billing/context.ts'
import type { Difference, NotCompared } from '../../payments/billing/reconcile/compare.ts'
import { reconcile } from '../../payments/billing/reconcile/reconcile.ts'
import { whatDid } from '../../payments/providers/outcomes.ts'
import { ProviderError } from '../../payments/providers/provider.ts'
import { action } from './command.ts'
import { addOperations } from './operations.ts'
import { readTime } from './times.ts'

const DIFFERENCES: Difference[] = ['mismatch', 'missing_here', 'missing_there', 'duplicate']

export async function register(program: Command): Promise<void> {
  const command = program
    .command('reconcile')
    .description(
      'Compare orders and refunds with those of the payment providers; exit code 1 if they differ or cannot be compared',
    )
  await addOperations(command)
  action(
    // Not required of the commands below it.
    command.option('--since <time>', 'Required: compare everything since this date-time, such as 2026-01-31T00:00:00Z'),
    async (app, { since }: { since?: string }) => {
      if (since === undefined) throw new UsageError('Give the time to compare from: --since 2026-01-31T00:00:00Z')
      const from = readTime('--since', since)
      const context = billingContext(app)
      if ((await app.providers.all()).length === 0)
        throw new Refusal(
          'There is no payment provider to compare with: connect a merchant account, or set SIMULATOR_URL.',
        )
      const { findings, not_compared, ...counts } = await reconcile(context, from).catch(throwAsRefusal)
      const numbers = DIFFERENCES.map((name) => [name, findings.filter(({ difference }) => difference === name).length])
      const json = { ...counts, ...Object.fromEntries(numbers), not_compared, findings }
      const lines = [
        ...findings.map((one) => `${one.difference}: ${one.psp} ${one.type} ${one.reference}: ${one.what}`),
        ...not_compared.map(sentenceOf),
      ]
      for (const why of new Set(not_compared.flatMap(({ unreachable }) => unreachable ?? [])))
        process.stderr.write(`${notReached(why)}\n`)
      const sum = Object.entries({ ...counts, ...Object.fromEntries(numbers) }).map(([name, n]) => `${n} ${name}`)
      return { json, text: [...lines, sum.join(', ')].join('\n'), exitCode: lines.length > 0 ? 1 : 0 }
    },
  )
}

function sentenceOf(one: NotCompared): string {
  const { psp, psp_merchant_id, organization_id, what } = one
  const account =
    organization_id === null
      ? `the ${psp}`
      : `merchant account ${psp} ${psp_merchant_id ?? '(none)'} of organization ${organization_id}`
  return `not compared: the ${what} of ${account}, because ${reasonOf(one)}.`
}

function reasonOf({ missing_permission, unreachable }: NotCompared): string {
  if (unreachable !== undefined) return `it could not be read to the end (${whatDid('its provider', unreachable)})`
  return missing_permission === null
    ? 'it is not connected here, or its provider is not set up'
    : `its key lacks the permission "${missing_permission}"`
}

function throwAsRefusal(error: unknown): never {
  if (error instanceof ProviderError) throw new Refusal(notReached(error.message))
  throw error
}

const notReached = (why: string) => `A payment provider could not be reached (${why}): try again.`
