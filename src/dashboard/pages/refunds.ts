// Refunds and disputes: their share of the revenue, their reasons, and the lists.
import { id, money, status, time, words } from '../format.ts'
import { html } from '../html.ts'
import { figures, seriesTable, total } from '../numbers.ts'
import { chosen, filters, further, section, tile, tiles } from '../parts.ts'
import { cell, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { picture, table } from '../table.ts'
import { type Answer, pathOf, projectOf, type View } from '../view.ts'

export async function refunds(view: View): Promise<Page> {
  if (!view.project) return { title: 'Refunds and disputes', body: noProject(view) }
  const { id: project_id, organization_id } = projectOf(view)
  const cursor = view.query.get('cursor')
  const [sum, lines, made, back] = await Promise.all([
    total(view, 'refunds,refund_count,refund_rate,chargebacks,chargeback_count,chargeback_rate'),
    figures(view, 'refunds,chargebacks,refund_rate', { by: view.span.by }),
    view.call('listRefunds', { params: { organization_id }, query: { project_id, limit: 20 } }) as Promise<Answer>,
    view.call('listMoneyBack', {
      params: { organization_id },
      query: { project_id, ...chosen(view, 'type'), limit: 20, ...(cursor && { cursor }) },
    }) as Promise<Answer>,
  ])
  return {
    title: 'Refunds and disputes',
    hasPeriod: true,
    body: html`
      ${tiles(
        tile('Refunds', sum, 'refunds', 'usd', { bad: true }),
        tile('Refunded movements', sum, 'refund_count', 'number', { bad: true }),
        tile('Refunds to revenue', sum, 'refund_rate', 'percent', { bad: true }),
        tile('Chargebacks', sum, 'chargebacks', 'usd', { bad: true }),
        tile('Disputes', sum, 'chargeback_count', 'number', { bad: true }),
        tile('Chargebacks to revenue', sum, 'chargeback_rate', 'percent', { bad: true }),
      )}
      ${section(
        `Money back by ${view.span.by}`,
        picture(
          view,
          'money-back',
          seriesTable(view, `Refunds and chargebacks by ${view.span.by}, in US dollars`, lines, [
            { label: 'Refunds', metric: 'refunds', unit: 'usd' },
            { label: 'Chargebacks', metric: 'chargebacks', unit: 'usd' },
          ]),
          { kind: 'stacked', unit: 'usd' },
        ),
      )}
      ${section('Refunds made here', table(view, 'refunds', refundTable(view, made.data), { hideCaption: true, empty: html`<p>No refund was made here yet. A charge is refunded on its own page.</p>` }))}
      ${section(
        'Movements of the report',
        html`${filters(view, [{ name: 'type', label: 'Type', options: { refund: 'Refunds', chargeback: 'Chargebacks', chargeback_reversal: 'Won disputes' } }])}
        ${table(view, 'movements', movementTable(back.data), { hideCaption: true, empty: html`<p>No money went back.</p>` })}${further(view, back.pagination.next_cursor)}`,
      )}`,
  }
}

function refundTable(view: View, data: Answer[]): Table {
  return {
    caption: 'Refunds made here',
    columns: [
      ...['Refund', 'State', 'Customer', 'Reason', 'What was bought', 'Begun'].map((label) => ({ label })),
      { label: 'Amount', number: true },
    ],
    rows: data.map((one) => [
      cell(
        id(one.refund_id, view.href(pathOf('charges', projectOf(view).organization_id, one.order_id))),
        one.refund_id,
      ),
      status(one.status),
      one.external_id,
      one.reason,
      one.consumable_revoked ? 'revoked' : one.soft_refund ? 'kept (soft)' : 'kept',
      time(one.created_at),
      cell(money(one.amount, one.currency_code), one.amount),
    ]),
  }
}

function movementTable(data: Answer[]): Table {
  return {
    caption: 'Movements of the report',
    columns: [
      ...['Movement', 'Type', 'State', 'Customer', 'Provider', 'Reason', 'When'].map((label) => ({ label })),
      { label: 'Amount', number: true },
    ],
    rows: data.map((one) => [
      cell(id(one.trx_id), one.trx_id),
      words(one.psp_transaction_type),
      status(one.status),
      one.external_id,
      one.psp,
      one.psp_reason_message ?? '',
      time(one.trx_created_at),
      cell(money(one.amount, one.currency_code), one.amount),
    ]),
  }
}
