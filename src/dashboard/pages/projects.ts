// Projects and organizations: all of them, found by a part of their id or name; new ones are created here.
import type { Answer } from '../call.ts'
import { id, time } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { asking, chosen, filters, further, section, selectField, tableSection, textField } from '../parts.ts'
import { cell, type Table } from '../sheet.ts'
import type { Page } from '../shell.ts'
import { table } from '../table.ts'
import { wholeOf } from '../tenants.ts'
import type { View } from '../view.ts'
import { shown } from './keys.ts'

const MOST_ORGANIZATIONS = 50

export async function projects(view: View): Promise<Page> {
  const cursor = view.query.get('cursor')
  const search = chosen(view, 'search')
  const [found, organizations]: Answer[] = await Promise.all([
    view.call('listProjects', { query: { ...search, limit: 50, ...(cursor && { cursor }) } }),
    view.call('listOrganizations', { query: { ...search, limit: MOST_ORGANIZATIONS } }),
  ])
  const isFirst = view.organizations.length === 0
  return {
    title: 'Projects',
    body: html`
      ${!isFirst && filters(view, [{ name: 'search', label: 'Id or name' }])}
      ${section(
        'Projects',
        html`${table(view, 'projects', projectTable(view, found.data), { hideCaption: true, empty: emptyText(search) })}
        ${further(view, found.pagination.next_cursor)}${makers(view)}`,
      )}
      ${
        !isFirst &&
        tableSection(view, 'organizations', organizationTable(view, organizations.data), {
          empty: html`<p>No organization matches.</p>`,
          ...(organizations.pagination.has_more && {
            note: `The newest ${MOST_ORGANIZATIONS}: others are found by their id or name.`,
          }),
        })
      }`,
  }
}

const emptyText = ({ search }: Record<string, string>): Piece =>
  search
    ? html`<p>No project matches.</p>`
    : html`<h3>No project yet</h3><p>An organization owns projects and takes the money.</p>`

function projectTable(view: View, data: Answer[]): Table {
  const nameOf = (organization: string): Piece =>
    view.organizations.find(({ id }) => id === organization)?.name || organization
  return {
    caption: 'Projects',
    columns: ['Project', 'Id', 'Organization', 'Created'].map((label) => ({ label })),
    rows: data.map((one) => [
      cell(html`<a href="${view.href('/', { project: one.id })}">${one.name || one.id}</a>`, one.name || one.id),
      cell(id(one.id), one.id),
      nameOf(one.organization_id),
      time(one.created_at),
    ]),
  }
}

const organizationTable = (view: View, data: Answer[]): Table => ({
  caption: 'Organizations',
  columns: ['Organization', 'Id', 'Created'].map((label) => ({ label })),
  rows: data.map((one) => [
    cell(html`<a href="${view.href('/', { project: wholeOf(one) })}">${one.name || one.id}</a>`, one.name || one.id),
    cell(id(one.id), one.id),
    time(one.created_at),
  ]),
})

function makers(view: View): Piece {
  const own = Object.fromEntries(view.organizations.map(({ id, name }) => [id, name || id]))
  const newIds = html`${textField('id', 'Id', { required: true, hint: 'Letters, digits, - and _' })}${textField('name', 'Name')}`
  return html`<div class="row">
    ${asking(view, { action: view.href('/projects/organizations'), button: 'Create an organization', says: 'Its first key is shown once, on the next page.', fields: newIds })}
    ${
      view.organization &&
      asking(view, {
        action: view.href('/projects/new'),
        button: 'Create a project',
        says: 'Its first key is shown once, on the next page.',
        fields: html`${selectField('organization_id', 'Organization', own, view.organization.id)}${newIds}`,
      })
    }</div>`
}

const given = (form: URLSearchParams) => ({
  id: form.get('id')?.trim() ?? '',
  ...(form.get('name')?.trim() && { name: form.get('name')!.trim() }),
})

export async function makeOrganization(view: View, form: URLSearchParams): Promise<Page> {
  return shown(view, await view.call('createOrganization', { body: given(form) }))
}

export async function makeProject(view: View, form: URLSearchParams): Promise<Page> {
  const params = { organization_id: form.get('organization_id') ?? '' }
  return shown(view, await view.call('createProject', { params, body: given(form) }))
}
