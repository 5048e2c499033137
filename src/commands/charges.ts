// tundish charges resolve: ends a charge that no provider can ever tell about.
import { type Command, Option } from 'commander'
import { audited } from '../audit.ts'
import { chargeAnswer } from '../billing/charge-answer.ts'
import { type Resolution, resolve } from '../billing/resolve.ts'
import { UsageError } from '../lib/errors.ts'
import { action } from './command.ts'
import { commandLine } from './operations.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

export function register(program: Command): void {
  const charges = program.command('charges').description('custom charges')
  action(
    charges
      .command('resolve <order_id>')
      .description('end a charge in progress that no provider can ever tell about')
      .addOption(
        new Option('--as <status>', 'what became of it')
          .choices(['succeeded', 'failed', 'cancelled'])
          .makeOptionMandatory(),
      )
      .requiredOption('--because <text>', 'why you know; kept with the order'),
    async (app, orderId: string, { as, because }: { as: Resolution; because: string }) => {
      if (!UUID.test(orderId)) throw new UsageError(`"${orderId}" is not the id of an order.`)
      if (because.trim() === '') throw new UsageError('--because must say why.')
      const context = { ...app, providerTimeoutMs: app.config.providerTimeoutMs }
      // First, so that what was tried is known whatever becomes of it. Why stands with the order: it may name a person.
      await audited(app, commandLine(), async () => ({
        entry: { action: 'order.resolve_asked', target: `order ${orderId}`, after: { as } },
        result: undefined,
      }))
      const order = await resolve(context, orderId, as, because)
      return { json: chargeAnswer(order, false), text: `The order ${orderId} is ${order.status}.` }
    },
  )
}
