// Erasures: the list with their status at payment providers, receipts, and the form that erases a person.
import { invalidValue } from '../../../lib/errors.ts'
import type { Item, Response } from '../call.ts'
import { id, number, plural, status, time } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { listed, pageLinks } from '../lists.ts'
import { facts, tableSection } from '../parts.ts'
import { cell, columns, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { table } from '../table.ts'
import { pathOf, projectOf, type View } from '../view.ts'

export async function erasePerson(view: View, form: URLSearchParams): Promise<string> {
  const { profile_id } = view.params as { profile_id: string }
  const project_id = projectOf(view).id
  if (form.get('confirm') !== profile_id)
    throw invalidValue('To confirm, type the profile ID exactly. Nothing was erased.')
  const body = { with_twins: form.get('with_twins') === '1' }
  await view.call('eraseProfile', { params: { project_id, profile_id }, body })
  return view.href(pathOf('erasures', profile_id))
}

export async function erasures(view: View): Promise<Page> {
  if (!view.project) return { title: 'Erasures', body: noProject(view) }
  const project_id = view.project.id
  const [list, state, ledgers] = await Promise.all([
    listed(view, 'erasures', 'listErasures', { params: { project_id } }, { rows: 50 }),
    view.call('getProjectState', { params: { project_id } }),
    view.may('compareLedgers') && view.call('compareLedgers'),
  ])
  const content: Table = {
    caption: 'Erased people',
    columns: columns('Person', 'Erased', 'Profile', 'At payment providers', 'Receipt'),
    rows: list.data.map((one) => [
      cell(id(one.profile_id, view.href(pathOf('people', one.profile_id))), one.profile_id),
      time(one.erased_at),
      one.is_known ? 'kept without personal data' : 'not in the database',
      providersOf(one),
      html`<a href="${view.href(pathOf('erasures', one.profile_id))}">Receipt</a>`,
    ]),
  }
  const pending = list.data.filter((one) => one.at_provider_pending > 0).length
  const isPart = list.next !== undefined || view.query.has('cursor')
  const agree = ledgers && ledgers.missing_in_database === 0 && ledgers.missing_in_file === 0
  return {
    title: 'Erasures',
    question: 'Who was erased, and is it done everywhere?',
    body: html`
      ${facts({
        'In the last seven days': number(state.erasures_of_week),
        'In total': number(state.erasures),
        'Pending at a payment provider': html`${pending === 0 ? 'none' : plural(pending, 'person', 'people')}${isPart && ' on this page'}`,
        ...(ledgers && {
          'Erasure ledgers (all projects)': agree
            ? html`${status('ok')} Database and file agree: ${plural(ledgers.in_database, 'erasure')}.`
            : html`${status('warning')} ${plural(ledgers.missing_in_database, 'erasure')} missing in the database, ${number(ledgers.missing_in_file)} in the file. See <a href="${view.href('/doctor')}">Doctor</a> for what to do.`,
        }),
      })}
      ${tableSection(view, 'erasures', content, { empty: html`<h3>No erasures yet</h3><p>Erase a person on their page, with <a href="/docs/guides/erasure">the data API</a>, or on the command line.</p>`, below: pageLinks(view, list) })}`,
  }
}

function providersOf({ at_provider, at_provider_pending, at_provider_unreachable }: Item<'listErasures'>): Piece {
  if (at_provider === 0) return html`<span class="quiet">no requests</span>`
  if (at_provider_unreachable > 0)
    return html`${status('unreachable')} ${number(at_provider_unreachable)} of ${number(at_provider)}`
  return at_provider_pending > 0
    ? html`${status('pending')} ${number(at_provider_pending)} of ${number(at_provider)}`
    : status('done')
}

export async function receipt(view: View): Promise<Page> {
  const { profile_id } = view.params as { profile_id: string }
  const one = await view.call('getErasure', { params: { project_id: projectOf(view).id, profile_id } })
  return {
    title: 'Receipt of an erasure',
    actions: html`<a href="${view.href('/erasures')}">All erasures</a>`,
    body: html`<article class="receipt"><p>The personal data of the person with the ID below was permanently deleted. If a backup that contains it is restored, it is deleted again.</p>
      ${facts({ Person: id(one.profile_id), Project: one.project_id, Erased: html`${time(one.erased_at)} UTC` })}
      <h2>Deleted</h2><ul>${one.removed.map((what: string) => html`<li>${what}</li>`)}</ul>
      <h2>Kept</h2><ul>${one.kept.map((what: string) => html`<li>${what}</li>`)}</ul>
      ${one.at_provider.length > 0 && html`<h2>At payment providers</h2>${table(view, 'at-provider', atProviderTable(one.at_provider), { hideCaption: true })}`}</article>
      ${one.same_person.length > 0 && sameNote(view, one.same_person)}
      <p class="quiet unprinted">Print this page to give the receipt to the person. Only the receipt is printed.</p>`,
  }
}

const sameNote = (view: View, ids: string[]) =>
  html`<p class="note unprinted">Not erased: other profiles with the e-mail address or the customer of this person. ${ids.map((one) => html`${id(one, view.href(pathOf('people', one)))} `)}</p>`

const atProviderTable = (data: Response<'getErasure'>['at_provider']): Table => ({
  caption: 'At payment providers',
  columns: columns('Provider', 'Account', 'Customer or card', 'Action', 'Status', 'Done'),
  rows: data.map((one) => [
    one.psp,
    one.psp_merchant_id,
    cell(id(one.target), one.target),
    one.how === 'delete' ? 'deleted' : 'data cleared, cards detached',
    html`${status(one.status)}${one.why && html` <span class="quiet">${one.why}</span>`}`,
    time(one.done_at),
  ]),
})
