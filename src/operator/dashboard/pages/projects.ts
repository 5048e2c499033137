// Projects and organizations: a list that can be searched by id or name, and the forms that create them.
import type { Item, Response } from '../call.ts'
import { id, time } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { listed, pageLinks } from '../lists.ts'
import { actionForm, chosenFilters, filters, selectField, tableSection, textField } from '../parts.ts'
import { cell, columns, type Table } from '../sheet.ts'
import type { Page } from '../shell.ts'
import { wholeOf } from '../tenants.ts'
import type { View } from '../view.ts'
import { shown } from './keys.ts'

type Made = Response<'createOrganization'> & Partial<Response<'createProject'>>

const ROWS = 50

export async function projects(view: View): Promise<Page> {
  const search = chosenFilters(view, 'search')
  const [found, organizations] = await Promise.all([
    listed(view, 'projects', 'listProjects', { query: search }, { rows: ROWS }),
    listed(
      view,
      'organizations',
      'listOrganizations',
      { query: search },
      { rows: ROWS, cursor: 'cursor_organizations' },
    ),
  ])
  const isFirst = view.organizations.length === 0
  return {
    title: 'Projects',
    question: 'Which organizations and projects are there?',
    body: html`
      ${!isFirst && filters(view, [{ name: 'search', label: 'ID or name' }])}
      ${tableSection(view, 'projects', projectTable(view, found.data), { empty: emptyText(search), below: html`${pageLinks(view, found)}${createForms(view)}` })}
      ${
        !isFirst &&
        tableSection(view, 'organizations', organizationTable(view, organizations.data), {
          empty: html`<p>No organizations match.</p>`,
          below: pageLinks(view, organizations),
        })
      }`,
  }
}

const emptyText = ({ search }: Record<string, string>): Piece =>
  search
    ? html`<p>No projects match.</p>`
    : html`<h3>No projects yet</h3><p>Create an organization, then its projects. Payments belong to the organization.</p>`

function projectTable(view: View, data: Item<'listProjects'>[]): Table {
  const nameOf = (organization: string): Piece =>
    view.organizations.find(({ id }) => id === organization)?.name || organization
  return {
    caption: 'Projects',
    columns: columns('Project', 'ID', 'Organization', 'Created'),
    rows: data.map((one) => [
      cell(html`<a href="${view.href('/', { project: one.id })}">${one.name || one.id}</a>`, one.name || one.id),
      cell(id(one.id), one.id),
      nameOf(one.organization_id),
      time(one.created_at),
    ]),
  }
}

const organizationTable = (view: View, data: Item<'listOrganizations'>[]): Table => ({
  caption: 'Organizations',
  columns: columns('Organization', 'ID', 'Created'),
  rows: data.map((one) => [
    cell(html`<a href="${view.href('/', { project: wholeOf(one) })}">${one.name || one.id}</a>`, one.name || one.id),
    cell(id(one.id), one.id),
    time(one.created_at),
  ]),
})

function createForms(view: View): Piece {
  const own = Object.fromEntries(view.organizations.map(({ id, name }) => [id, name || id]))
  const newIds = html`${textField('id', 'ID', { required: true, hint: 'Letters, digits, - and _' })}${textField('name', 'Name')}`
  return html`<div class="row">
    ${actionForm(view, { action: view.href('/projects/organizations'), button: 'Create an organization', explanation: 'Its first key is shown once, on the next page.', fields: newIds })}
    ${
      view.organization &&
      actionForm(view, {
        action: view.href('/projects/new'),
        button: 'Create a project',
        explanation: 'Its first key is shown once, on the next page.',
        fields: html`${selectField('organization_id', 'Organization', own, view.organization.id)}${newIds}`,
      })
    }</div>`
}

interface NewOwner {
  id: string
  name?: string
}

const given = (form: URLSearchParams): NewOwner => ({
  id: form.get('id') ?? '',
  ...(form.get('name') && { name: form.get('name')! }),
})

export async function makeOrganization(view: View, form: URLSearchParams): Promise<Page> {
  const body = given(form)
  const made = await view.call('createOrganization', { body: { ...body } })
  return shownOwner(view, 'organization', body, made, wholeOf(body))
}

export async function makeProject(view: View, form: URLSearchParams): Promise<Page> {
  const params = { organization_id: form.get('organization_id') ?? '' }
  const body = given(form)
  return shownOwner(view, 'project', body, await view.call('createProject', { params, body: { ...body } }), body.id)
}

/** The page after an organization or a project was created. `place` selects it in links. */
function shownOwner(view: View, owner: string, { id, name }: NewOwner, made: Made, place: string): Page {
  return shown(made, {
    title: owner === 'project' ? 'New project' : 'New organization',
    message: `The ${owner} “${name ?? id}” was created. Its first key`,
    next: html`<a class="button" href="${view.href('/', { project: place })}">Open the ${owner}</a>`,
  })
}
