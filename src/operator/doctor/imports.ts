// The doctor's check of imports from Stripe that the server runs: those that ended with an error, and those that cannot read Stripe.
import { writeFields } from '../../data/ingest/stripe/names.ts'
import type { StripeImportOptions } from '../../data/ingest/stripe/state.ts'
import type { Db } from '../../lib/pg/db.ts'
import { type Finding, failed, ofTenant, warning } from './finding.ts'

/** Returns no finding if every import in the background runs, is done, or was stopped by an operator. */
export async function checkImports(db: Db): Promise<Finding[]> {
  const rows = await db.query(`
    select project_id, psp_merchant_id, status, error, options from stripe_imports
    where background and error is not null and status <> 'stopped' order by project_id, psp_merchant_id`)
  return rows.map(({ project_id, psp_merchant_id, status, error, options }) => {
    const message = `The import of the merchant account ${psp_merchant_id} into the project ${project_id}: ${error}`
    const tenant = { project_id: project_id! }
    if (status !== 'failed')
      return ofTenant(tenant, warning('imports', message, 'Check the status page of Stripe and your network.'))
    const command = `tundish stripe-import start ${psp_merchant_id} --project ${project_id}`
    const fix = `Then continue it: ${command}${optionsOf(JSON.parse(options!))}`
    return ofTenant(tenant, failed('imports', message, fix))
  })
}

/** An import continues only with its own options; with others it begins again. */
function optionsOf({ since, external_id_key, follow, metadata, match_email }: StripeImportOptions): string {
  const given = {
    '--since': since,
    '--external-id-key': external_id_key,
    '--metadata': metadata && writeFields(metadata),
    '--match-email': match_email || undefined,
    '--follow': follow || undefined,
  }
  return Object.entries(given)
    .map(([name, value]) => (value == null ? '' : ` ${name} ${value}`))
    .join('')
}
