// The sessions and payments behind figures: lists with the period and the filters of the page that led to them.
import { FILTERED_BY, type PageFilter, VISITED_BY } from '../dimensions.ts'
import { unfiltered } from '../filter.ts'
import { country, cut, id, language, sandboxBadge, time, words } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { listed, pageLinks } from '../lists.ts'
import { type Names, nameOfFunnel, namesOf } from '../numbers.ts'
import { chosenFilters, filters, personLink, tableSection } from '../parts.ts'
import { amountColumns, cell, columns, minorCells, named, type Table } from '../sheet.ts'
import { noProject, type Page, PLAIN_PERIOD } from '../shell.ts'
import { allChoices, daysOf, pathOf, type View } from '../view.ts'

/** A person, by the e-mail address if it is known. */
const personCell = (view: View, { profile_id, email }: { profile_id: string; email: string | null }) =>
  named(personLink(view, profile_id, email), profile_id, email ?? profile_id)

const textFilter = (name: PageFilter['dimension']) => ({ name, label: words(name) })

export async function sessions(view: View): Promise<Page> {
  const title = 'Sessions'
  if (!view.project) return { title, body: noProject(view) }
  view.filtered.applied = true
  const names = await namesOf(view)
  const own = ['funnel', 'source', 'campaign', 'country', 'variant', 'locale', 'experiment']
  const list = await listed(view, 'sessions', 'listProjectSessions', {
    params: { project_id: view.project.id },
    query: { ...daysOf(view), ...chosenFilters(view, ...own, 'answer'), ...firstOf(view), test: view.test },
  })
  const content: Table = {
    caption: 'Sessions',
    columns: columns(
      'Person',
      'Began',
      'Funnel',
      'Source',
      'Campaign',
      'Country',
      'Language',
      'Device',
      'Variant',
      'Session',
    ),
    rows: list.data.map((one) => [
      personCell(view, one),
      time(one.created_at),
      funnelOf(names, one),
      short(one.source),
      short(one.campaign),
      one.country ? named(country(one.country), one.country) : '',
      one.locale ? language(one.locale) : '',
      one.device ?? '',
      short(one.variant),
      cell(id(one.id), one.id),
    ]),
  }
  return {
    title,
    question: 'Who came, from where, and on which device?',
    ...PLAIN_PERIOD,
    body: tableSection(view, 'sessions', content, {
      note: html`${unfiltered(view, VISITED_BY)}${firstNote(view, 'Only the first session of each person.')}${experimentNote(view, names)}${answerNote(view)}${testNote(view)}`,
      above: filters(view, [
        { ...textFilter('funnel'), options: names.funnels },
        textFilter('source'),
        textFilter('campaign'),
        textFilter('country'),
        textFilter('variant'),
      ]),
      empty: html`<p>No sessions of this period match. Choose a longer period, or fewer filters.</p>`,
      below: pageLinks(view, list),
    }),
  }
}

const short = (text: string | null): Piece => (text === null ? '' : cut(text))

/** Says that test data is left out, as it is from figures. */
const testNote = (view: View): Piece =>
  !view.test &&
  html`Without sandbox and preview data. <a href="${view.href(view.path, { ...allChoices(view), test: '1' })}">Include it</a>`

const firstOf = ({ query }: View) => (query.get('first') === 'true' ? { first: true } : {})

/** Says that the list has one row for each person, with a link to all. */
const firstNote = (view: View, only: string): Piece =>
  view.query.get('first') === 'true' &&
  html`${only} <a href="${view.href(view.path, { ...allChoices(view), first: null })}">Show all</a> `

/** Names the experiment that all sessions of the list are of, with a link to all of them. */
function experimentNote(view: View, { experiments }: Names): Piece {
  const experiment = view.query.get('experiment')
  if (!experiment) return ''
  return html`Only sessions in the experiment “${experiments[experiment] ?? experiment}”. <a href="${view.href(view.path, { ...allChoices(view), experiment: null })}">Show all</a> `
}

/** Names the answer that all sessions of the list have, with a link to all of them. */
function answerNote(view: View): Piece {
  const answer = view.query.get('answer')
  if (!answer) return ''
  const [screen, question, kind, ...value] = answer.split(' ')
  const given = kind === 'value' ? html`the answer “${value.join(' ')}”` : `an answer that is ${kind}`
  return html`Only sessions with ${given} to ${question} on ${screen}. <a href="${view.href(view.path)}">Show all</a> `
}

const funnelOf = (names: Names, { funnel_id }: { funnel_id: string | null }) =>
  funnel_id === null ? '' : named(cut(nameOfFunnel(names, funnel_id)!), funnel_id)

export async function payments(view: View): Promise<Page> {
  const title = 'Payments'
  if (!view.project) return { title, body: noProject(view) }
  view.filtered.applied = true
  const names = await namesOf(view)
  const list = await listed(view, 'payments', 'listProjectPayments', {
    params: { project_id: view.project.id },
    query: {
      ...daysOf(view),
      ...chosenFilters(view, ...FILTERED_BY, 'provider', 'currency'),
      ...firstOf(view),
      test: view.test,
    },
  })
  const content: Table = {
    caption: 'Payments',
    columns: [
      { label: 'Person' },
      ...amountColumns('Amount'),
      ...columns('Paid', 'Product', 'Funnel', 'Country', 'Provider', 'Subscription', 'Payment'),
    ],
    rows: list.data.map((one) => [
      personCell(view, one),
      ...minorCells(one),
      time(one.created_at),
      one.product_id === null ? '' : named(cut(names.products[one.product_id] ?? one.product_id), one.product_id),
      funnelOf(names, one),
      one.country ? named(country(one.country), one.country) : '',
      one.payment_provider ?? '',
      subscriptionLink(view, one.subscription_id),
      cell(html`${id(one.id)}${sandboxBadge(one)}`, one.id),
    ]),
  }
  return {
    title,
    question: 'Who paid, how much, and for what?',
    ...PLAIN_PERIOD,
    body: tableSection(view, 'payments', content, {
      note: html`${firstNote(view, 'Only the first payment of each person. New customers are also customers without a profile, whose payments are in Finance.')}What revenue is made of. Payments of customers without a profile are in Finance; what went back is in Refunds and disputes. ${testNote(view)}`,
      above: filters(view, [
        { ...textFilter('product'), options: names.products },
        { ...textFilter('funnel'), options: names.funnels },
        textFilter('source'),
        textFilter('campaign'),
        textFilter('country'),
        { name: 'currency', label: 'Currency' },
        { name: 'provider', label: 'Provider' },
      ]),
      empty: html`<p>No payments of this period match. Choose a longer period, or fewer filters.</p>`,
      below: pageLinks(view, list),
    }),
  }
}

export const subscriptionLink = (view: View, subscriptionId: string | null): Piece =>
  subscriptionId === null ? '' : id(subscriptionId, view.href(pathOf('subscriptions', subscriptionId)))
