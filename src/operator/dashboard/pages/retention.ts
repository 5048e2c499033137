// Retention: the share of the subscriptions first paid for in a month that still pays, by months since.
import { addDays, addMonths, monthOf } from '../../../lib/days.ts'
import { number, percent } from '../format.ts'
import { html, type Piece } from '../html.ts'
import type { Figure } from '../numbers.ts'
import { tableSection } from '../parts.ts'
import { cell, numbers, type Table } from '../sheet.ts'
import { allChoices, type View } from '../view.ts'

const MONTHS = 12

/** A row for each month of first payment, a column for each month since: the share still paying at the end of that month. */
export function cohorts(view: View, began: Figure[], ended: Figure[]): Piece {
  const last = addDays(view.span.to, -1).slice(0, 7)
  const running = view.span.today.slice(0, 7)
  const rows = began
    .filter(({ key, values }) => key !== '' && values.began_paying)
    .slice(-MONTHS)
    .map(({ key, values }) => {
      const size = values.began_paying!
      let left = size
      const cells = Array.from({ length: MONTHS }, (_, n) => {
        const month = addMonths(`${key}-01`, n).slice(0, 7)
        if (month > last) return cell('', null)
        left -= ended.find((one) => one.key === key && one.period === `${month}-01`)?.values.ended ?? 0
        return cell(
          html`<span class="heat h${Math.round((left / size) * 10)} ${month === running && 'running'}">${percent(left / size)}</span>`,
          left / size,
        )
      })
      return [
        cell(
          html`<a href="${view.href(view.path, { ...allChoices(view), first_payment: key })}#subscriptions">${monthOf(key!)}</a>`,
          key,
        ),
        cell(number(size), size),
        ...cells,
      ]
    })
  const content: Table = {
    caption: 'Retention by month of the first payment',
    columns: [
      { label: 'First payment' },
      ...numbers('Subscriptions', ...Array.from({ length: MONTHS }, (_, n) => `${n}`)),
    ],
    rows,
  }
  return tableSection(view, 'cohorts', content, {
    note: 'Columns: months since the first payment. Cells: the share still paying at the end of that month. The current month is not over.',
  })
}
