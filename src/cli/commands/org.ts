// tundish org: creates, lists and changes organizations.
import type { Command } from 'commander'
import type { App } from '../../app.ts'
import { checkRateLimit } from '../../core/limits/setting.ts'
import { listOrganizations } from '../../core/tenants/listing.ts'
import { UsageError } from '../../lib/errors.ts'
import { action } from './command.ts'
import { addList } from './list-command.ts'
import { addOperations, runOperation } from './operations.ts'
import { describeResponse } from './text.ts'

interface Options {
  oneOffCharge?: string
  maxAmount?: string[]
  rateLimit?: string
  eraseAtProvider?: string
}

export async function register(program: Command): Promise<void> {
  const org = program.command('org').description('Manage organizations: their settings for charges and erasures')
  await addOperations(org, ['org create', 'org list', 'org set'])

  action(
    org
      .command('create <id>')
      .description('Create an organization and print its secret key, once')
      .option('--name <name>', 'Display name'),
    async (app, id: string, { name }: { name?: string }) => {
      const made = await runOperation('org', 'createOrganization', app, {
        body: { id, ...(name !== undefined && { name }) },
      })
      return {
        json: made,
        text: `Created the organization ${made.id}. Its secret key, shown only now:\n${made.secret_key}`,
      }
    },
  )
  addList(org, {
    noun: 'organization',
    columns: ['id', 'name', 'one_off_charge_enabled', 'created_at'],
    list: listOrganizations,
  })
  action(
    org
      .command('set <id>')
      .description('Change the settings of an organization')
      .option('--one-off-charge <on|off>', 'Whether custom charges are allowed')
      .option(
        '--max-amount <amount>',
        'Maximum of one charge in major units: 500, or JPY=50000 for one currency; repeatable',
        collect,
      )
      .option(
        '--erase-at-provider <how>',
        'Whether erasures reach the payment provider: off, on, or delete the customer there',
      )
      .option(
        '--rate-limit <limit>',
        'Requests a second with each of its keys: 200; with how many at once: 200/1000; off; default',
      ),
    async (app, id: string, options: Options) => {
      const json = await set(app, id, options)
      return { json, text: describeResponse(json) }
    },
  )
}

/** Checks all options before it sets any, so that a refused command changes nothing. Returns the organization. */
async function set(app: App, id: string, { oneOffCharge, maxAmount = [], rateLimit, eraseAtProvider }: Options) {
  if ([oneOffCharge, maxAmount[0], rateLimit, eraseAtProvider].every((one) => one === undefined))
    throw new UsageError('Nothing to set: give --one-off-charge, --max-amount, --erase-at-provider or --rate-limit.')
  checkChoice('--erase-at-provider', ['off', 'on', 'delete'], eraseAtProvider)
  checkChoice('--one-off-charge', ['on', 'off'], oneOffCharge)
  if (rateLimit !== undefined) checkRateLimit(rateLimit)
  const params = { organization_id: id }
  const body = {
    ...(oneOffCharge !== undefined && { one_off_charge_enabled: oneOffCharge === 'on' }),
    ...(maxAmount.length > 0 && { one_off_charge_max_amount: readLimits(maxAmount) }),
    ...(eraseAtProvider !== undefined && { erase_at_provider: eraseAtProvider }),
  }
  // First, because this operation checks the amounts.
  if (Object.keys(body).length > 0) await runOperation('org', 'setOrganization', app, { params, body })
  if (rateLimit !== undefined)
    await runOperation('org', 'setOrganizationRateLimit', app, { params, body: { rate_limit: rateLimit } })
  return runOperation('org', 'getOrganization', app, { params })
}

function checkChoice(option: string, choices: string[], given: string | undefined): void {
  if (given === undefined || choices.includes(given)) return
  throw new UsageError(`${option} must be ${choices.slice(0, -1).join(', ')} or ${choices.at(-1)}, got "${given}".`)
}

function readLimits(texts: string[]): Record<string, string> {
  const limits = texts.map(readLimit)
  const currencies = limits.map(([currency]) => currency.toUpperCase())
  const twice = currencies.find((currency, n) => currencies.indexOf(currency) < n)
  if (twice === '*') throw new UsageError('--max-amount without a currency is given twice.')
  if (twice !== undefined) throw new UsageError(`--max-amount for ${twice} is given twice.`)
  return Object.fromEntries(limits)
}

/** `500` is for every currency, `JPY=50000` for one. The amount is checked where it is set. */
const readLimit = (text: string): [currency: string, amount: string] => {
  const equals = text.indexOf('=')
  return equals < 0 ? ['*', text] : [text.slice(0, equals), text.slice(equals + 1)]
}

const collect = (value: string, before: string[] = []) => [...before, value]
