// What the pages about finance share: the month, amounts, and the tables of accounts and movements.
import { todayIn } from '../../../core/tenants/reporting.ts'
import { addMonths, dateOf } from '../../../lib/days.ts'
import { mapInTurns } from '../../../lib/time-sliced.ts'
import { financeZone } from '../../../payments/billing/finance/zone.ts'
import type { Exact, Response } from '../call.ts'
import { country, id, money, number, plainMoney, time, words } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { amountCells, amountColumns, type Cell, cell, columns, csvColumns, numbers, type Table } from '../sheet.ts'
import { allChoices, organizationOf, type View } from '../view.ts'

type Report = Exact<Response<'getFinanceReport'>>
type Row = Exact<Response<'listFinanceRows'>>['rows'][number]

/** The present month of the finance report, whose time zone may be another than that of the project. */
export async function presentMonth(view: View): Promise<string> {
  const { query } = view.app.db
  return (await todayIn(query, await financeZone(query, organizationOf(view).id))).slice(0, 7)
}

export const monthBefore = (month: string, count: number) => addMonths(`${month}-01`, -count).slice(0, 7)

/** A zero is a dash. */
export const amount = (value: number | string | null, currency: string): Cell =>
  cell(
    value !== null && Number(value) === 0 ? '–' : money(value, currency),
    value === null ? null : plainMoney(value, currency),
  )

const account = (one: Report['totals'][number]): Piece =>
  html`${words(one.psp)}${one.psp_merchant_id && html` ${one.psp_merchant_id}`}${one.provider_account && html` <span class="quiet">${one.provider_account}</span>`}`

/** Each account leads to its movements. */
const linkedAccount = (view: View, one: Report['totals'][number]): Piece => {
  const chosen = { psp: one.psp, psp_merchant_id: one.psp_merchant_id }
  return html`<a href="${view.href('/finance', { ...allChoices(view), ...chosen })}#rows">${account(one)}</a>`
}

export function accountTable(view: View, report: Report): Table {
  const { totals, currencies, fees, reporting, reporting_currency: reported } = report
  const feeCurrencies: string[] = fees.map(({ fee_currency }) => fee_currency)
  const payments = currencies.reduce((sum, one) => sum + one.payments, 0)
  const corrects = totals.some(({ corrections }) => corrections > 0)
  const sums = (one: Report['reporting'] & { currency_code: string }): Cell[] => [
    amount(one.net, one.currency_code),
    amount(one.gross, one.currency_code),
    amount(one.refunded, one.currency_code),
    amount(one.charged_back, one.currency_code),
    ...(corrects ? [amount(one.corrected, one.currency_code)] : []),
  ]
  const feeOf = (list: Report['fees'], currency: string) => {
    const found = list.find(({ fee_currency }) => fee_currency === currency)
    return found ? amount(found.fee, currency) : cell('–', null)
  }
  const labels = ['Net', 'Gross', 'Refunds', 'Chargebacks', ...(corrects ? ['Corrections'] : [])]
  return {
    caption: 'By merchant account',
    columns: [
      { label: 'Account' },
      ...csvColumns('Currency'),
      ...numbers(...labels, ...feeCurrencies.map((code) => `Fees ${code}`), 'Payments', `Net in ${reported}`),
    ],
    rows: [
      ...totals.map((one) => [
        cell(linkedAccount(view, one), [one.psp, one.psp_merchant_id].filter(Boolean).join(' ')),
        one.currency_code,
        ...sums(one),
        ...feeCurrencies.map((code) => feeOf(one.fees, code)),
        cell(number(one.payments), one.payments),
        amount(one.net_reported, reported),
      ]),
      ...(totals.length > currencies.length ? currencies : []).map((one) => [
        cell(html`<strong>All accounts, ${one.currency_code}</strong>`, 'All accounts'),
        one.currency_code,
        ...sums(one),
        ...feeCurrencies.map(() => cell('', null)),
        cell(number(one.payments), one.payments),
        cell('', null),
      ]),
      ...(totals.length > 0
        ? [
            [
              cell(html`<strong>All in ${reported}</strong>`, `All in ${reported}`),
              reported,
              ...sums({ ...reporting, currency_code: reported }),
              ...feeCurrencies.map((code) => feeOf(fees, code)),
              cell(number(payments), payments),
              amount(reporting.net, reported),
            ],
          ]
        : []),
    ],
  }
}

export async function rowTable(view: View, rows: Row[], reported: string): Promise<Table> {
  const feeCurrencies = [...new Set(rows.flatMap(({ fee_currency }) => fee_currency ?? []))].sort()
  return {
    caption: 'Movements',
    columns: [
      { label: 'When' },
      ...amountColumns('Amount'),
      { label: 'Kind' },
      ...numbers(`In ${reported}`, ...feeCurrencies.map((code) => `Fee ${code}`)),
      { label: 'Account' },
      { label: 'Customer', right: 'people' },
      { label: 'E-mail', right: 'people' },
      ...columns('Country', 'Product', 'Subscription', 'Service from', 'Service to', 'Provider’s ID'),
      ...csvColumns('Booked', 'Project', 'Order', 'Report ID'),
    ],
    rows: await mapInTurns(rows, (one) => [
      time(one.paid_at),
      ...amountCells(one),
      cell(
        html`${words(one.kind)}${one.correction && html` <span class="badge warn">correction</span>`}`,
        one.correction ? `correction of ${one.kind}` : one.kind,
      ),
      amount(one.amount_reported, reported),
      ...feeCurrencies.map((code) => (one.fee_currency === code ? amount(one.fee, code) : cell('–', null))),
      [one.psp, one.psp_merchant_id].filter(Boolean).join(' '),
      one.external_id &&
        cell(
          html`<a class="cut" href="${view.href('/people', { q: one.external_id })}">${one.external_id}</a>`,
          one.external_id,
        ),
      one.email,
      cell(one.country && country(one.country), one.country),
      one.product,
      cell(one.subscription_id && id(one.subscription_id), one.subscription_id),
      cell(one.service_from && dateOf(one.service_from), one.service_from),
      cell(one.service_to && dateOf(one.service_to), one.service_to),
      cell(one.psp_transaction_id && id(one.psp_transaction_id), one.psp_transaction_id),
      // Of a correction, another month than that of its payment.
      ...[one.booked_at, one.project_id, one.order_id, one.trx_id],
    ]),
  }
}
