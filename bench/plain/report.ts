// The payment report of the plain server.
import type { FastifyInstance } from 'fastify'
import type { Pool } from 'pg'

const COLUMNS = `
  order_id, trx_id, trx_created_at, amount, amount_usd, currency_code, status, integration_type, region, pp_id,
  pp_version, is_cit, is_fallback, is_vaulted, psp, psp_date, psp_transaction_type, psp_transaction_id, psp_merchant_id,
  psp_status, psp_card_token_type, psp_reason_message, psp_reason_type, psp_reason_code, psp_reason_decline_type,
  meta_subs_id, meta_subs_iteration, meta_retry_step, meta_oneoff_id, meta_client_svc_project_id,
  meta_client_svc_session_id, meta_client_svc_price_id, pm_type, threeds_challenge_issued, threeds_protocol_version,
  threeds_response_code, threeds_reason_code, threeds_reason_text, authorization_type, network,
  pm_data_is_network_tokenized, pm_data_bin_account_funding_type, pm_data_bin_account_number_type,
  pm_data_bin_issuer_name, pm_data_bin_issuer_country_code, pm_data_bin_issuer_currency_code,
  pm_data_bin_prepaid_reloadable_indicator, pm_data_bin_product_code, pm_data_bin_product_name,
  pm_data_bin_product_usage_type, pm_data_bin_regional_restriction, pm_data_expiration_date, pm_data_first6,
  pm_data_last4`

interface Body {
  last_transaction_date: string
  limit?: number
}

export function addReport(app: FastifyInstance, pool: Pool): void {
  app.post<{ Params: { org: string }; Body: Body }>('/:org/v1/transaction_report', async ({ params, body }) => {
    const { rows } = await pool.query({
      name: 'report',
      text: `select ${COLUMNS} from report_transactions
        where organization_id = $1 and trx_created_at > $2 order by trx_created_at limit $3`,
      values: [params.org, body.last_transaction_date, body.limit ?? 100],
    })
    return { transactions: rows }
  })
}
