// Refunds and disputes: their share of revenue, of the payments that they belong to, their reasons, and the lists.
import type { Item } from '../call.ts'
import { urlValue } from '../dimensions.ts'
import { unfiltered } from '../filter.ts'
import { id, nameOfReason, status, time, words } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { firstLacking, type Lacking, lackingOf } from '../lacking.ts'
import { listed, pageLinks } from '../lists.ts'
import { type Figure, figures, seriesTable, total, valueCell } from '../numbers.ts'
import {
  chosenFilters,
  customerLink,
  filters,
  rowsBehind,
  section,
  tableSection,
  tile,
  tiles,
  withoutDollars,
} from '../parts.ts'
import { chosenReason } from '../reason.ts'
import { amountCells, amountColumns, cell, columns, named, sums, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { chart } from '../table.ts'
import { allChoices, daysOf, inCurrency, organizationOf, pathOf, type View } from '../view.ts'
import { returnRates } from './return-rates.ts'

type Reason = Pick<Item<'listMoneyBack'>, 'psp_reason_message' | 'psp_reason_code'>

const TYPES = { refund: 'Refunds', chargeback: 'Chargebacks', chargeback_reversal: 'Won disputes' }

export async function refunds(view: View): Promise<Page> {
  if (!view.organization) return { title: 'Refunds and disputes', body: noProject(view) }
  const params = { organization_id: view.organization.id }
  const ofProject = view.project ? { project_id: view.project.id } : {}
  const reason = await chosenReason(view, 'refund_count,chargeback_count')
  const [sum, lacks, lines, reasons, rates, made, back] = await Promise.all([
    total(view, 'refunds,refund_count,refund_rate,chargebacks,chargeback_count,chargeback_rate,without_usd'),
    lackingOf(view, 'refunds', 'chargebacks', 'revenue'),
    figures(view, 'refunds,chargebacks,refund_rate', { by: view.span.by }),
    figures(view, 'refunds,refund_count,chargebacks,chargeback_count', { by: 'reason' }),
    returnRates(view),
    listed(view, 'refunds', 'listRefunds', { params, query: ofProject }, { cursor: 'cursor_refunds' }),
    listed(view, 'movements', 'listMoneyBack', {
      params,
      query: { ...ofProject, ...daysOf(view), ...chosenFilters(view, 'type', 'move'), ...reason, test: view.test },
    }),
  ])
  return {
    title: 'Refunds and disputes',
    hasPeriod: true,
    question: 'How much goes back to customers, and why?',
    body: html`${summary(view, sum, lacks)}
      ${withoutDollars(view, sum)}
      ${section(
        `Refunds and chargebacks by ${view.span.by}`,
        chart(
          view,
          'money-back',
          seriesTable(view, `Refunds and chargebacks by ${view.span.by}, ${inCurrency(view)}`, lines, [
            { label: 'Refunds', metric: 'refunds', unit: 'usd' },
            { label: 'Chargebacks', metric: 'chargebacks', unit: 'usd' },
          ]),
          { kind: 'stacked', unit: 'usd' },
        ),
      )}
      ${rates}
      ${tableSection(view, 'reasons', reasonTable(view, reasons), { empty: html`<p>No refunds or disputes in this period.</p>`, note: 'Reason codes of the payment provider.' })}
      ${tableSection(view, 'refunds', refundTable(view, made.data), { note: unfiltered(view), empty: html`<p>No refunds of custom charges yet. A charge can be refunded on its page.</p>`, below: pageLinks(view, made) })}
      ${tableSection(view, 'movements', movementTable(view, back.data), {
        note: html`${unfiltered(view)}${countedNote(view)}`,
        above: filters(view, [
          { name: 'type', label: 'Type', options: TYPES },
          { name: 'reason', label: 'Reason code' },
        ]),
        empty: html`<p>No refunds or disputes of this period match.</p>`,
        below: pageLinks(view, back),
      })}`,
  }
}

const COUNTED = { refund: 'refunds that were made', chargeback: 'disputes that took money' }

/** Names the movements that a number counts, with a link to all. */
function countedNote(view: View): Piece {
  const move = view.query.get('move')
  if (!move) return ''
  const named = COUNTED[move as keyof typeof COUNTED] ?? words(move).toLowerCase()
  return html`<strong>Only ${named}.</strong> <a href="${view.href(view.path, { ...allChoices(view), move: null })}#movements">Show all</a>`
}

function summary(view: View, sum: Figure, lacks: Record<'refunds' | 'chargebacks' | 'revenue', Lacking>): Piece {
  const listed = (type: keyof typeof TYPES) => rowsBehind(view, '/refunds', 'movements', { type })
  const counted = (move: keyof typeof COUNTED) => rowsBehind(view, '/refunds', 'movements', { move })
  return tiles(
    tile('Refunds', sum, 'refunds', 'usd', { bad: true, lacks: lacks.refunds, rows: listed('refund') }),
    tile('Number of refunds', sum, 'refund_count', 'number', { bad: true, rows: counted('refund') }),
    tile('Refund rate', sum, 'refund_rate', 'percent', {
      bad: true,
      lacks: firstLacking(lacks.refunds, lacks.revenue),
    }),
    tile('Chargebacks', sum, 'chargebacks', 'usd', { bad: true, lacks: lacks.chargebacks, rows: listed('chargeback') }),
    tile('Disputes', sum, 'chargeback_count', 'number', { bad: true, rows: counted('chargeback') }),
    tile('Chargeback rate', sum, 'chargeback_rate', 'percent', {
      bad: true,
      lacks: firstLacking(lacks.chargebacks, lacks.revenue),
    }),
  )
}

function reasonTable(view: View, found: Figure[]): Table {
  const sumOf = ({ values }: Figure) => (values.refunds ?? 0) + (values.chargebacks ?? 0)
  const rows = found.filter(({ values }) => values.refund_count || values.chargeback_count || values.chargebacks)
  return {
    caption: 'By reason',
    columns: [{ label: 'Reason' }, ...sums('Refunds', 'Refunded', 'Disputes', 'Charged back')],
    rows: rows
      .sort((a, b) => sumOf(b) - sumOf(a))
      .map(({ key, values }) => [
        named(
          html`<a href="${view.href(view.path, { ...allChoices(view), reason: urlValue(key ?? '') })}#movements">${nameOfReason(key ?? '')}</a>`,
          key ?? '',
        ),
        valueCell('number', values.refund_count ?? 0),
        valueCell('usd', values.refunds ?? 0),
        valueCell('number', values.chargeback_count ?? 0),
        valueCell('usd', values.chargebacks ?? 0),
      ]),
  }
}

function refundTable(view: View, data: Item<'listRefunds'>[]): Table {
  return {
    caption: 'Refunds of custom charges',
    columns: [
      { label: 'Refund' },
      ...amountColumns('Amount'),
      { label: 'Status' },
      { label: 'Customer', right: 'people' },
      { label: 'Created' },
      { label: 'Reason', right: 'people' },
      { label: 'Consumable' },
    ],
    rows: data.map((one) => [
      cell(id(one.refund_id, chargeLink(view, one.order_id)), one.refund_id),
      ...amountCells(one),
      status(one.status),
      customerLink(view, one.external_id),
      time(one.created_at),
      one.reason,
      one.consumable_revoked ? 'revoked' : one.soft_refund ? 'kept (soft refund)' : 'kept',
    ]),
  }
}

const chargeLink = (view: View, orderId: string) =>
  view.may('getOrder') ? view.href(pathOf('charges', organizationOf(view).id, orderId)) : undefined

/** The provider's reason for a refund, dispute or decline. */
export const reasonOf = ({ psp_reason_message, psp_reason_code }: Reason): string =>
  psp_reason_message ?? (psp_reason_code ? words(psp_reason_code) : '')

/** The report calls every movement back `refunded`; a dispute is not a refund. */
const statusOf = ({ psp_transaction_type, status }: Item<'listMoneyBack'>): string =>
  status !== 'refunded' || psp_transaction_type === 'refund'
    ? status
    : psp_transaction_type === 'chargeback'
      ? 'charged back'
      : 'won'

/** The payment that the money went back of: the page of a custom charge, or the payments of its customer. */
const paymentLink = (view: View, { order_id }: { order_id: string }) =>
  id(order_id, view.mayOpen('/people') ? view.href('/people', { q: order_id }) : undefined)

function movementTable(view: View, data: Item<'listMoneyBack'>[]): Table {
  return {
    caption: 'Refunds and disputes in the payment report',
    columns: [
      { label: 'When' },
      ...amountColumns('Amount'),
      { label: 'Status' },
      { label: 'Customer', right: 'people' },
      ...columns('Reason', 'Type', 'Provider', 'Payment', 'Report ID'),
    ],
    rows: data.map((one) => [
      time(one.paid_at),
      ...amountCells(one),
      status(statusOf(one)),
      customerLink(view, one.external_id),
      reasonOf(one),
      words(one.psp_transaction_type),
      one.psp,
      cell(paymentLink(view, one), one.order_id),
      cell(id(one.trx_id), one.trx_id),
    ]),
  }
}
