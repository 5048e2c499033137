// People: the newest of the project, and the search by e-mail or any id.
import type { Response } from '../call.ts'
import { country, cut, id, language, status, time } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { listed, pageLinks } from '../lists.ts'
import { nameOfFunnel, namesOf } from '../numbers.ts'
import { chosenFilters, filters, personLink, tableSection } from '../parts.ts'
import { searchElsewhere } from '../shards.ts'
import { cell, columns, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { nameOfProject, pathOf, type View } from '../view.ts'

type Found = Response<'search'>['results'][number]

export async function people(view: View): Promise<Page | string> {
  const q = view.query.get('q')?.trim() ?? ''
  if (q === '') return { title: 'People', question: HINT, body: html`${await newest(view)}` }
  const { results } = await view.call('search', { query: { q } })
  if (results.length === 0) return { title: 'People', body: nothingFound(view, q) }
  const only = onlyPage(view, results)
  if (only !== undefined && !view.query.has('csv')) return only
  const content: Table = {
    caption: `Results for “${q}”`,
    columns: columns('Type', 'ID', 'E-mail', 'Status', 'Project', 'Created'),
    rows: results.map((one) => [
      one.kind.replace(/^./, (letter: string) => letter.toUpperCase()),
      cell(id(one.id, linkOf(view, one)), one.id),
      one.email ?? '',
      one.status ? status(one.status) : '',
      cell(nameOfProject(view, one.project_id), one.project_id),
      time(one.created_at),
    ]),
  }
  return { title: 'People', body: tableSection(view, 'found', content) }
}

const HINT =
  'Search for any part of an e-mail address before the @ (three letters or more, such as “phi” of sophie), or for a full ID: of a person, session, subscription, payment, order, refund or dispute, also the payment provider’s.'

const ANONYMOUS = { false: 'With an address', true: 'Anonymous' }

/** The list of the project's people. */
async function newest(view: View): Promise<Piece> {
  if (!view.project) return noProject(view)
  const params = { project_id: view.project.id }
  const { funnel, ...others } = chosenFilters(view, 'funnel', 'source', 'campaign', 'country', 'variant')
  const anonymous = view.query.get('anonymous')
  const query = {
    ...others,
    ...(funnel !== undefined && { funnel_id: funnel }),
    ...(anonymous && { anonymous: anonymous === 'true' }),
  }
  view.filtered.applied = true
  if (view.query.get('product')) view.filtered.refused.add('People are not filtered by product.')
  const [list, names] = await Promise.all([
    listed(view, 'people', 'listProjectProfiles', { params, query }),
    namesOf(view),
  ])
  const content: Table = {
    caption: 'Newest people',
    columns: [
      { label: 'Person' },
      { label: 'Person ID', csvOnly: true },
      ...columns('Newest subscription', 'Country', 'Language', 'Funnel', 'Created'),
    ],
    rows: list.data.map((one) => [
      cell(personLink(view, one.id, one.email), one.email ?? one.id),
      one.id,
      html`${one.subscription_status && status(one.subscription_status)} ${one.anonymized_at && status('erased')} ${one.preview && status('preview')}`,
      one.country ? country(one.country) : '',
      one.locale ? language(one.locale) : '',
      cut(nameOfFunnel(names, one.funnel_id) ?? ''),
      time(one.created_at),
    ]),
  }
  const empty = anonymous
    ? html`<p>No such people.</p>`
    : html`<h3>No people yet</h3><p>Load profiles with <a href="/docs/guides/import">an import</a>.</p>`
  const above = filters(view, [{ name: 'anonymous', label: 'E-mail', options: ANONYMOUS }])
  return tableSection(view, 'people', content, { above, empty, below: pageLinks(view, list) })
}

const nothingFound = (view: View, q: string) =>
  html`<div class="empty" id="found"><h2>No results for “${q}”</h2><p>Search for an e-mail address, a part of it before the @ (three letters or more), or a full ID. An erased person can only be found by ID.</p>${searchElsewhere(view)}</div>`

/** The page that shows everything found, if there is one: a person is found with their orders, which their page shows too. */
function onlyPage(view: View, results: Found[]): string | undefined {
  const others = results.filter(({ kind }) => kind !== 'order')
  const pages = new Set((others.length > 0 ? others : results).map((one) => linkOf(view, one)))
  return pages.size === 1 ? [...pages][0] : undefined
}

/** The page that shows the object: for a record of a person, the person's page; for a custom charge, the charge's. */
function linkOf(
  view: View,
  { kind, id, project_id, organization_id, profile_id, order_id }: Found,
): string | undefined {
  if (kind === 'project') return view.href('/', { project: id })
  if (profile_id) return view.href(pathOf('people', profile_id), { project: project_id })
  return HAVE_ORDERS.has(kind) && order_id
    ? view.href(pathOf('charges', organization_id, order_id), { project: project_id })
    : undefined
}

/** Kinds of objects whose order is a custom charge, which has a page. */
const HAVE_ORDERS = new Set(['order', 'refund', 'dispute'])
