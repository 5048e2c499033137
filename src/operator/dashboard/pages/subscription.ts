// One subscription: its terms, the person, and its payments.
import { ApiError } from '../../../lib/errors.ts'
import { day, id, sandboxBadge, status, time } from '../format.ts'
import { html } from '../html.ts'
import { listed, pageLinks } from '../lists.ts'
import { nameOfFunnel, namesOf } from '../numbers.ts'
import { facts, tableSection } from '../parts.ts'
import { amountColumns, cell, isCell, minorCells, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { pathOf, type View } from '../view.ts'
import { priceCells } from './subscriptions.ts'

export async function subscription(view: View): Promise<Page> {
  const { subscription_id } = view.params as { subscription_id: string }
  if (!view.project) return { title: 'Subscription', body: noProject(view) }
  const params = { project_id: view.project.id }
  const [names, { data }, payments] = await Promise.all([
    namesOf(view),
    view.call('listProjectSubscriptions', { params, query: { id: subscription_id, limit: 1 } }),
    listed(view, 'payments', 'listProjectPayments', { params, query: { subscription: subscription_id } }),
  ])
  const [one] = data
  if (!one)
    throw new ApiError(404, 'object_not_found', `There is no subscription "${subscription_id}" in this project.`)
  const [price] = priceCells(one)
  const content: Table = {
    caption: 'Payments',
    columns: [{ label: 'Payment' }, ...amountColumns('Amount'), { label: 'Paid' }],
    rows: payments.data.map((paid) => [
      cell(html`${id(paid.id)}${sandboxBadge(paid)}`, paid.id),
      ...minorCells(paid),
      time(paid.created_at),
    ]),
  }
  return {
    title: one.product_name ?? 'Subscription',
    actions: html`<a href="${view.href('/subscriptions')}">All subscriptions</a>`,
    body: html`
      <p class="lead">${isCell(price!) ? price.shown : price} ${status(one.status)}</p>
      ${facts({
        Subscription: id(one.id),
        Person: html`<a href="${view.href(pathOf('people', one.profile_id))}">${one.email ?? one.profile_id}</a>`,
        Product: one.product_name ?? one.product_id,
        Funnel: nameOfFunnel(names, one.funnel_id) ?? '–',
        Provider: one.payment_provider ?? '–',
        Created: time(one.created_at),
        'Paid until': day(one.period_ends_at, view.reporting.timeZone),
        Renews: one.renews ? 'yes' : 'no',
      })}
      ${tableSection(view, 'payments', content, { empty: html`<p>No payments of this subscription.</p>`, below: pageLinks(view, payments) })}`,
  }
}
