// tundish charges resolve: ends a charge or a refund whose outcome the provider will never know.
import { type Command, Option } from 'commander'
import { addEntry } from '../../core/audit/audit.ts'
import { UsageError } from '../../lib/errors.ts'
import { isUuid } from '../../lib/ids.ts'
import { billingContext } from '../../payments/billing/context.ts'
import { findEither, nameOf, type Resolution, resolve } from '../../payments/billing/reconcile/resolve.ts'
import { action } from './command.ts'
import { commandLine } from './operations.ts'

export function register(program: Command): void {
  const charges = program.command('charges').description('Record the outcome of a charge or refund')
  action(
    charges
      .command('resolve <id>')
      .description(
        'Record the outcome of a charge (by its order_id) or a refund whose outcome the provider will never know',
      )
      .addOption(
        new Option('--as <status>', 'The outcome').choices(['succeeded', 'failed', 'cancelled']).makeOptionMandatory(),
      )
      .requiredOption('--because <text>', 'How you know the outcome; stored with it'),
    async (app, id: string, { as, because }: { as: Resolution; because: string }) => {
      if (!isUuid(id)) throw new UsageError(`"${id}" is not the id of an order or a refund.`)
      if (because.trim() === '') throw new UsageError('--because must say why.')
      const found = await findEither(app.db, id)
      const name = nameOf(found)
      const context = billingContext(app)
      // The audit entry comes first, so that every attempt is recorded. It lacks the reason, which may name a person and is
      // stored with the order.
      await addEntry(app, commandLine(), { action: 'order.resolve_asked', target: name, after: { as } })
      const { kind, row } = await resolve(context, found, as, because)
      return { json: kind.responseOf(row), text: `The ${name} is ${row.status}.` }
    },
  )
}
