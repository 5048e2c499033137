// The declined payments of the period, on the page of charges.
import { unfiltered } from '../filter.ts'
import { id, ordinal, time } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { listed, pageLinks } from '../lists.ts'
import { chosenFilters, customerLink, filters, tableSection } from '../parts.ts'
import { chosenReason } from '../reason.ts'
import { amountCells, amountColumns, cell, columns, type Table } from '../sheet.ts'
import { allChoices, daysOf, type View } from '../view.ts'
import { reasonOf } from './refunds.ts'

const FIRST = { any: 'only these', paid: 'paid later', none: 'not paid', 2: 'paid at the 2nd', 3: 'paid at the 3rd' }

/** The list of the period; nothing for those who may not see people. */
export async function declinedPayments(view: View): Promise<Piece> {
  if (!view.may('listDeclinedPayments')) return ''
  const list = await listed(
    view,
    'declined',
    'listDeclinedPayments',
    {
      params: { organization_id: view.organization!.id },
      query: {
        ...daysOf(view),
        ...(view.project && { project_id: view.project.id }),
        ...chosenFilters(view, 'decline', 'paid_attempt'),
        ...(await chosenReason(view, 'declined')),
        test: view.test,
      },
    },
    { cursor: 'cursor_declined' },
  )
  const content: Table = {
    caption: 'Declined payments',
    columns: [
      { label: 'Customer' },
      ...amountColumns('Amount'),
      ...columns('Reason', 'Declined', 'Decline type', 'Provider', 'Order'),
    ],
    rows: list.data.map((one) => [
      customerLink(view, one.external_id),
      ...amountCells(one),
      reasonOf(one),
      time(one.paid_at),
      one.psp_reason_decline_type ?? '',
      one.psp,
      cell(id(one.order_id), one.order_id),
    ]),
  }
  return tableSection(view, 'declined', content, {
    note: html`${unfiltered(view)}Renewals and custom charges of this period, in all currencies. ${firstNote(view)}`,
    above: filters(view, [
      { name: 'reason', label: 'Reason code' },
      { name: 'paid_attempt', label: 'First declines', options: FIRST },
      { name: 'decline', label: 'Decline type', options: { soft: 'soft', hard: 'hard' } },
    ]),
    empty: html`<p>No declined payments of this period match.</p>`,
    below: pageLinks(view, list),
  })
}

const OF_FIRST: Record<string, string> = {
  any: '',
  paid: ' of payments made later',
  none: ' of payments not made so far',
}

/** Names the first declines that are listed, with a link to all. */
function firstNote(view: View): Piece {
  const attempt = view.query.get('paid_attempt')
  if (!attempt) return ''
  const those = OF_FIRST[attempt] ?? ` of payments made at the ${ordinal(Number(attempt))} attempt`
  return html`<strong>Only first declines${those}.</strong> <a href="${view.href(view.path, { ...allChoices(view), paid_attempt: null })}#declined">Show all</a>`
}
