// Settings: what the billing API may do, how fast keys may call, erasures at providers, organizations and projects.
import { id, status } from '../format.ts'
import { type Html, html, type Piece } from '../html.ts'
import { asking, facts, hiddenField, section, selectField, textField } from '../parts.ts'
import { cell, type Table } from '../sheet.ts'
import type { Page } from '../shell.ts'
import { table } from '../table.ts'
import { type Answer, allOf, organizationOf, projectOf, type View } from '../view.ts'
import { shown } from './keys.ts'

const AT_PROVIDER = {
  off: 'Tundish only',
  on: 'empty the customer there, detach cards',
  delete: 'delete the customer there',
}
const RATE_HINT = 'Requests a second such as 200, or 200/1000 with how many at once; off, or default.'

export async function settings(view: View): Promise<Page> {
  const [organizations, project] = await Promise.all([
    allOf(view.call, 'listOrganizations'),
    view.project && (view.call('getProject', { params: { project_id: view.project.id } }) as Promise<Answer>),
  ])
  const chosen = organizations.find(({ id }) => id === view.organization?.id)
  return {
    title: 'Settings',
    body: html`
      ${chosen && organizationSettings(view, chosen)}
      ${project && projectSettings(view, project)}
      ${section(
        'Organizations and projects',
        html`${table(view, 'projects', projectTable(view, organizations), { hideCaption: true, empty: html`<h3>No project yet</h3><p>An organization owns projects and takes the money.</p>` })}
      <div class="row">
      ${asking(view, { action: view.href('/settings/organizations'), button: 'Make an organization', says: 'Its first key is shown once, on the next page.', fields: html`${textField('id', 'Id', { required: true, hint: 'Letters, digits, - and _' })}${textField('name', 'Name')}` })}
      ${
        organizations.length > 0
          ? asking(view, {
              action: view.href('/settings/projects'),
              button: 'Make a project',
              says: 'Its first key is shown once, on the next page.',
              fields: html`${selectField('organization_id', 'Organization', Object.fromEntries(organizations.map((one) => [one.id, one.name || one.id])), chosen?.id ?? '')}${textField('id', 'Id', { required: true, hint: 'Letters, digits, - and _' })}${textField('name', 'Name')}`,
            })
          : ''
      }</div>`,
      )}`,
  }
}

function organizationSettings(view: View, one: Answer): Html {
  const limits = Object.entries(one.one_off_charge_max_amount as Record<string, string>)
  return section(
    `Organization ${one.name || one.id}`,
    html`${facts({
      'Custom charges': one.one_off_charge_enabled ? status('allowed') : status('not allowed'),
      'Largest amounts':
        limits.map(([currency, amount]) => `${currency === '*' ? 'any currency' : currency} ${amount}`).join(', ') ||
        'no limit',
      'An erasure reaches': AT_PROVIDER[one.erase_at_provider as keyof typeof AT_PROVIDER],
      'Rate of its keys': one.rate_limit,
    })}
    <div class="row">${asking(view, {
      action: view.href('/settings/charges'),
      button: 'Change custom charges',
      danger: true,
      says: 'This decides whether the billing API may charge saved cards, and how much at once.',
      fields: html`${selectField('enabled', 'Custom charges', { '1': 'allowed', '': 'not allowed' }, one.one_off_charge_enabled ? '1' : '')}${textField('max', 'Largest amount', { value: one.one_off_charge_max_amount['*'] ?? '' })}${textField('currency', 'in currency', { hint: 'Such as EUR. Empty: in all that have no limit of their own.' })}`,
    })}
    ${asking(view, {
      action: view.href('/settings/erasures'),
      button: 'Change erasures',
      danger: true,
      says: 'This decides what an erasure does at payment providers, from the next one on. What it does there cannot be undone.',
      fields: selectField('erase_at_provider', 'At the payment provider', AT_PROVIDER, one.erase_at_provider),
    })}
    ${rateForm(view, 'organization', one.rate_limit)}</div>`,
  )
}

function projectSettings(view: View, one: Answer): Html {
  return section(
    `Project ${one.name || one.id}`,
    html`${facts({ Id: id(one.id), 'Rate of each of its keys': one.rate_limit })}
    <div class="row">${rateForm(view, 'project', one.rate_limit)}
    ${asking(view, {
      action: view.href('/settings/figures'),
      button: 'Compute all figures again',
      says: 'All figures of this project are computed again from its records. They are shown meanwhile. Only needed when the doctor says so.',
    })}</div>`,
  )
}

const rateForm = (view: View, owner: 'organization' | 'project', value: string) =>
  asking(view, {
    action: view.href('/settings/rates'),
    button: 'Change the rate',
    says: 'Calls above it are refused with 429 until there is room again.',
    fields: html`${hiddenField('owner', owner)}${textField('rate_limit', 'Rate', { value, required: true, hint: RATE_HINT })}`,
  })

function projectTable(view: View, organizations: Answer[]): Table {
  const nameOf = (organization: string): Piece =>
    organizations.find(({ id }) => id === organization)?.name || organization
  return {
    caption: 'Projects',
    columns: ['Project', 'Id', 'Organization'].map((label) => ({ label })),
    rows: view.projects.map((one) => [
      html`<a href="${view.href('/', { project: one.id })}">${one.name || one.id}</a>`,
      cell(id(one.id), one.id),
      nameOf(one.organization_id),
    ]),
  }
}

export async function saveCharges(view: View, form: URLSearchParams): Promise<string> {
  const max = form.get('max')?.trim()
  const currency = form.get('currency')?.trim().toUpperCase() || '*'
  return save(view, {
    one_off_charge_enabled: form.get('enabled') === '1',
    ...(max && { one_off_charge_max_amount: { [currency]: max } }),
  })
}

export const saveErasures = (view: View, form: URLSearchParams): Promise<string> =>
  save(view, { erase_at_provider: form.get('erase_at_provider') ?? '' })

async function save(view: View, body: object): Promise<string> {
  const params = { organization_id: organizationOf(view).id }
  await view.call('setOrganization', { params, body: body as Record<string, unknown> })
  return view.href('/settings', { done: 'saved' })
}

export async function saveRate(view: View, form: URLSearchParams): Promise<string> {
  const body = { rate_limit: form.get('rate_limit')?.trim() ?? '' }
  if (form.get('owner') === 'project')
    await view.call('setProjectRateLimit', { params: { project_id: projectOf(view).id }, body })
  else await view.call('setOrganizationRateLimit', { params: { organization_id: organizationOf(view).id }, body })
  return view.href('/settings', { done: 'saved' })
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

export async function rebuild(view: View): Promise<string> {
  await view.call('rebuildFigures', { params: { project_id: projectOf(view).id } })
  return view.href('/settings', { done: 'rebuilt' })
}
