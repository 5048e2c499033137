// Links from figures to the subscriptions behind them, and the note of a list that such a link led to.
import { readMoved } from '../../../data/figures/behind.ts'
import { addDays, dateOf, monthOf } from '../../../lib/days.ts'
import { words } from '../format.ts'
import { html, type Piece } from '../html.ts'
import type { View } from '../view.ts'

/** The subscriptions behind a figure of the page: the same days, without those in the future. */
export function movedLink(view: View, move: string, more: Record<string, string> = {}): string {
  const { from, to, today } = view.span
  const days = `${from} ${[addDays(to, -1), today].sort()[0]}`
  return `${view.href('/subscriptions', { ...more, moved: `${days} ${move}` })}#subscriptions`
}

/** The same for a tile; nothing for those who may not see subscriptions. */
export const movedRows = (view: View, move: string) =>
  view.may('listProjectSubscriptions') ? movedLink(view, move) : undefined

/** Whether the page lists only the subscriptions behind a figure. */
export const isBehind = ({ query }: View) => ['moved', 'due', 'first_payment'].some((name) => query.has(name))

const MOVED: Record<string, string> = {
  created: 'were created',
  started: 'were first paid for',
  ended: 'ended',
  new: 'are of new customers',
  reactivation: 'are of customers who came back',
  expansion: 'are of customers who began to pay more',
  contraction: 'are of customers who began to pay less',
  churn: 'are of customers who left',
  paused: 'were paused',
  changed: 'changed the MRR',
  trial: 'began with a trial',
  converted: 'began with a trial and were paid for since',
  paying: 'were being paid for',
}

/** Names the figure whose subscriptions are listed, with a link to all. */
export function behindNote(view: View): Piece {
  if (!isBehind(view)) return ''
  const { query } = view
  const { from, to, move } = readMoved(query.get('moved') ?? '')
  const due = query.get('due')
  const cohort = query.get('first_payment')
  const reason = query.get('reason')
  const days = from === to || move === 'paying' ? `on ${dateOf(to)}` : `from ${dateOf(from)} to ${dateOf(to)}`
  return html`Only those${due ? ` of which a payment is due on ${dateOf(due)}` : ''}${cohort && ` that were first paid for in ${monthOf(cohort)}`}${move && ` that ${MOVED[move] ?? move}, ${days}`}${reason && `, for the reason “${words(reason)}”`}. <a href="${view.href(view.path)}#subscriptions">Show all</a>`
}
