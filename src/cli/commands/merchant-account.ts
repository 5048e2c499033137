// tundish merchant-account: merchant accounts of an organization, and their credentials at the payment provider.
import type { Command } from 'commander'
import { UsageError } from '../../lib/errors.ts'
import { CONNECT_COMMAND } from '../../operator/admin/connections.ts'
import { action } from './command.ts'
import { addOperations, runOperation } from './operations.ts'
import { readSecrets } from './secrets.ts'
import { describeResponse } from './text.ts'

interface Options {
  org: string
  sandbox?: boolean
  from?: string
}

export async function register(program: Command): Promise<void> {
  const accounts = program.command('merchant-account').description('Connect accounts at payment providers')
  await addOperations(accounts, [CONNECT_COMMAND])
  action(
    accounts
      .command('connect <psp> <psp_merchant_id>')
      .description('Store or replace the credentials of a merchant account, such as: connect stripe shop-test')
      .requiredOption('--org <id>', 'The organization')
      .option('--sandbox', 'The account is in the provider’s test mode')
      .option(
        '--from <file>',
        'File with the secrets, each on its own line; by default they are asked for, or read from a pipe',
      ),
    async (app, psp: string, psp_merchant_id: string, { org, sandbox = false, from }: Options) => {
      const lines = await readSecrets(from, ['Secret key', 'Signing secret of the notifications (empty: none)'])
      const json = await runOperation('merchant-account', 'connectMerchantAccount', app, {
        params: { organization_id: org, psp, psp_merchant_id },
        body: { sandbox, ...(await credentialsIn(psp, lines)) },
      })
      return { json, text: describeResponse(json) }
    },
  )
}

/**
 * A line is the secret key, or a signing secret, by its form. Where a provider's secrets have no form, the first line is the key; `-`
 * keeps the stored one.
 */
async function credentialsIn(
  psp: string,
  lines: string[],
): Promise<{ secret_key?: string; webhook_secrets?: string[] }> {
  const adapter = (await import('../../payments/providers/adapters.ts')).adapters[psp]
  const isSigning = (line: string, n: number) =>
    adapter ? adapter.isWebhookSecret(line) && (n > 0 || !adapter.modeOf(line)) : line.startsWith('whsec_')
  const webhook_secrets = lines.filter(isSigning)
  const [secret_key, ...more] = lines.filter((line, n) => !isSigning(line, n) && line !== '-')
  if (more.length > 0)
    throw new UsageError('There is more than one secret key: give one, and signing secrets a line each.')
  return { ...(secret_key !== undefined && { secret_key }), ...(webhook_secrets.length > 0 && { webhook_secrets }) }
}
