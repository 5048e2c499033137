// tundish rates load: stores exchange rates, for the amounts in US dollars.
import type { Command } from 'commander'
import { addEntry } from '../../core/audit/audit.ts'
import { refuseLeaving } from '../../core/tenants/leaving.ts'
import { requireOrganization } from '../../core/tenants/tenants.ts'
import { markRates } from '../../data/figures/rate-marks.ts'
import { readRates } from '../../payments/billing/rates/rate-files.ts'
import { storeRates } from '../../payments/billing/rates/store-rates.ts'
import { action } from './command.ts'
import { commandLine } from './operations.ts'
import { readTextFile } from './text-file.ts'

export function register(program: Command): void {
  const rates = program.command('rates').description('Load exchange rates, for amounts in US dollars')
  action(
    rates
      .command('load <file>')
      .description("Load the European Central Bank's CSV or XML, or a CSV with the columns date,currency,per_euro")
      .option('--org <id>', 'Only for this organization; by default for all'),
    async (app, file: string, { org }: { org?: string }) => {
      const { db } = app
      const read = readRates(await readTextFile(file), file)
      if (org !== undefined) await requireOrganization(db.query, org)
      await refuseLeaving(db.query, { organization_id: org })
      const days = [...new Set(read.map(({ day }) => day))].sort()
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
        text: `${read.length} rates of ${days.length} ${days.length === 1 ? 'day' : 'days'} loaded${span}.`,
      }
    },
  )
}
