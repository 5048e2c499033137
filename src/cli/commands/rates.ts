// tundish rates: loads or fetches exchange rates, for the amounts in US dollars.
import type { Command } from 'commander'
import { addEntry } from '../../core/audit/audit.ts'
import { refuseLeaving } from '../../core/tenants/leaving.ts'
import { requireOrganization } from '../../core/tenants/tenants.ts'
import { markRates } from '../../data/figures/rate-marks.ts'
import { count } from '../../lib/text.ts'
import { fetchRatesNow } from '../../payments/billing/rates/fetch-rates.ts'
import { readRates } from '../../payments/billing/rates/rate-files.ts'
import { refuseFuture, storeRates } from '../../payments/billing/rates/store-rates.ts'
import { action } from './command.ts'
import { addOperations, commandLine } from './operations.ts'
import { readNamedFile } from './text-file.ts'

export async function register(program: Command): Promise<void> {
  const rates = program.command('rates').description('Load or fetch exchange rates, for amounts in US dollars')
  await addOperations(rates)
  action(rates.command('fetch').description('Fetch the rates of RATES_URL now'), async (app) => {
    const json = await fetchRatesNow(app, commandLine(), markRates)
    const day = json.last_day === null ? 'The file has not changed' : `The newest day is ${json.last_day}`
    return { json, text: `${count(json.rates, 'rate')} ${json.rates === 1 ? 'is' : 'are'} new or changed. ${day}.` }
  })
  action(
    rates
      .command('load <file>')
      .description(
        "Load the European Central Bank's CSV or XML, also as a ZIP, or a CSV with the columns date,currency,per_euro",
      )
      .option('--org <id>', 'Only for this organization; by default for all'),
    async (app, file: string, { org }: { org?: string }) => {
      const { db } = app
      const read = readRates(await readNamedFile(file), file)
      if (org !== undefined) await requireOrganization(db.query, org)
      await refuseLeaving(db.query, { organization_id: org })
      const days = [...new Set(read.map(({ day }) => day))].sort()
      if (days.length > 0) await refuseFuture(db, days.at(-1)!, file)
      const result = {
        rates: read.length,
        days: days.length,
        first_day: days[0] ?? null,
        last_day: days.at(-1) ?? null,
      }
      const target = org === undefined ? 'all organizations' : `organization ${org}`
      await storeRates(db, read, org ?? null, markRates)
      await addEntry(app, commandLine(), { action: 'rates.loaded', target, after: result })
      const span = days.length > 0 ? `, ${result.first_day} to ${result.last_day}` : ''
      return {
        json: result,
        text: `${count(read.length, 'rate')} of ${count(days.length, 'day')} loaded${span}.`,
      }
    },
  )
}
