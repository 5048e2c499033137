// The beginning of a project: a checklist with the state of each step, in place of figures that would all be 0.
import { addDays, dateOf } from '../../../lib/days.ts'
import { MAX_DAYS } from '../../admin/figures-query.ts'
import { html, type Piece } from '../html.ts'
import { figures } from '../numbers.ts'
import { pageLink } from '../parts.ts'
import { inCurrency, type View } from '../view.ts'

/** Whether the project has no figures at all, in any period. */
export async function isNew(view: View): Promise<boolean> {
  const metric = 'sessions,sales,new_subscriptions'
  const [here] = await figures(view, metric)
  if (hasAny(here?.values)) return false
  const [ever] = await figures(view, metric, { from: addDays(view.span.to, -MAX_DAYS), to: view.span.to })
  return !hasAny(ever?.values)
}

const hasAny = (values: Record<string, number | null> = {}) =>
  Object.values(values).some((value) => value !== null && value > 0)

export async function checklist(view: View, projectId: string): Promise<Piece> {
  const has = await view.call('getProjectSetup', { params: { project_id: projectId } })
  const link = (path: string, text: string) => pageLink(view, path, text)
  const step = (isDone: boolean, title: string, text: Piece) =>
    html`<li class="${isDone ? 'fine' : 'open'}"><strong>${title}</strong> <span>${isDone ? 'Done. ' : 'Not yet. '}${text}</span></li>`
  const all = [
    step(
      has.has_records,
      'Records arrive',
      has.has_records
        ? html`See ${link('/people', 'People')}.`
        : html`Load them with <a href="/docs/guides/import">an import</a>, write them with ${link('/keys', 'a key')}, or import from Stripe in ${link('/merchant-accounts', 'Merchant accounts')}.`,
    ),
    step(
      has.has_card,
      'A card is saved',
      has.merchant_accounts === 0
        ? html`First connect an account in ${link('/merchant-accounts', 'Merchant accounts')}.`
        : !has.has_card && 'A card is saved with a customer’s first payment.',
    ),
    step(
      has.has_payment,
      'First charge',
      has.has_payment
        ? html`See ${link('/charges', 'Charges')}.`
        : has.has_test_payment
          ? 'So far only in the sandbox.'
          : html`<a href="/docs/guides/charging">Charge a saved card</a>, or import payments.`,
    ),
    step(
      has.has_answer,
      'A webhook is answered',
      has.has_answer
        ? html`See ${link('/webhooks', 'Webhooks')}.`
        : has.endpoints > 0
          ? html`No endpoint has taken an event: see ${link('/webhooks', 'Webhooks')}.`
          : html`Add an endpoint in ${link('/webhooks', 'Webhooks')}.`,
    ),
    step(
      has.rates_day !== null,
      'Exchange rates',
      has.rates_day === null
        ? html`Without them, payments in other currencies have no value ${inCurrency(view)}: <a href="/docs/guides/commands#rates">load exchange rates</a>.`
        : `The newest are of ${dateOf(has.rates_day)}.`,
    ),
  ]
  return html`<section><h2>First steps</h2><p class="quiet">Figures appear here a few seconds after the first records arrive.</p>
    <ul class="now">${all}</ul></section>
    ${has.has_test_payment && !view.test && html`<p class="note">There is test data only. <a href="${view.href('/', { test: '1' })}">Show it</a></p>`}`
}
