// Keys, merchant accounts and settings: what an installation is made of.
import { id, status, time } from '../format.ts'
import { type Html, html, type Piece } from '../html.ts'
import { asking, facts, section, selectField, textField } from '../parts.ts'
import { cell, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { table } from '../table.ts'
import { type Answer, allOf, pathOf, projectOf, type View } from '../view.ts'

type Owner = 'organization' | 'project'

export async function keys(view: View): Promise<Page> {
  if (!view.project) return { title: 'Keys', body: noProject(view) }
  const { id: project_id, organization_id } = projectOf(view)
  const [ofProject, ofOrganization, operators] = await Promise.all([
    allOf(view.call, 'listProjectKeys', { params: { project_id } }),
    allOf(view.call, 'listOrganizationKeys', { params: { organization_id } }),
    allOf(view.call, 'listOperators'),
  ])
  return {
    title: 'Keys',
    body: html`
      ${owned(view, 'project', project_id, ofProject, 'They open the data API of this project and sign its webhooks.')}
      ${owned(view, 'organization', organization_id, ofOrganization, 'They open the billing API of the organization.')}
      ${section('Operator keys', table(view, 'operators', operatorTable(operators), { hideCaption: true }), { note: 'They open this dashboard and the operator’s API. They are made and ended at the command line alone, so that a key cannot make itself successors.' })}`,
  }
}

function owned(view: View, owner: Owner, ownerId: string, data: Answer[], note: string): Html {
  const path = pathOf('keys', owner, ownerId)
  const content: Table = {
    caption: `Keys of ${owner} ${ownerId}`,
    columns: ['Name', 'Key', 'Made', 'Ends', 'Change'].map((label) => ({ label })),
    rows: data.map((one) => [
      one.name || 'first key',
      cell(id(one.id), one.id),
      time(one.created_at),
      time(one.expires_at),
      isOver(one)
        ? status('expired')
        : html`${asking(view, { action: view.href(`${path}/${one.id}/rotate`), button: 'Rotate', says: 'A new key of the same name is made and shown once. The old one goes on for as long as you say.', fields: selectField('overlap', 'The old key ends', { '0': 'at once', '3600': 'in an hour', '86400': 'in a day', '604800': 'in a week' }, '86400') })}
          ${asking(view, { action: view.href(`${path}/${one.id}/revoke`), button: 'Revoke', danger: true, says: 'Whoever uses this key is refused at once. It cannot be undone.' })}`,
    ]),
  }
  return section(
    content.caption,
    html`${table(view, `${owner}-keys`, content, { hideCaption: true })}
    ${asking(view, { action: view.href(path), button: 'Make a key', says: 'The key is shown once, on the next page.', fields: textField('name', 'What it is for', { required: true }) })}`,
    { note },
  )
}

const isOver = ({ expires_at }: Answer) => expires_at !== null && Date.parse(expires_at) <= Date.now()

const operatorTable = (data: Answer[]): Table => ({
  caption: 'Operator keys',
  columns: ['Name', 'Key', 'Scope', 'Made', 'Last used', 'Ends'].map((label) => ({ label })),
  rows: data.map((one) => [
    one.name,
    cell(id(one.id), one.id),
    one.scope,
    time(one.created_at),
    time(one.last_used_at),
    time(one.expires_at),
  ]),
})

const OPERATIONS = { organization: 'Organization', project: 'Project' }

function ownerOf(view: View): { owner: Owner; title: string; params: Record<string, string> } {
  const owner: Owner = view.params.owner === 'organization' ? 'organization' : 'project'
  const params = { [`${owner}_id`]: view.params.owner_id!, ...(view.params.key_id && { key_id: view.params.key_id }) }
  return { owner, title: OPERATIONS[owner], params }
}

/** The page that shows a key, the only time it is shown: it is no redirect, and kept nowhere. */
function shown(view: View, { id: keyId, name, secret_key, webhook_secret }: Answer): Page {
  return {
    title: 'The new key',
    body: html`<p class="done" role="status">The key ${name ? `“${name}” ` : ''}was made. It is shown only now: keep it where secrets are kept.</p>
      ${facts({
        Key: html`<code class="secret">${secret_key}</code>${id('')}<button type="button" class="copy" data-copy="${secret_key}" aria-label="Copy the key" hidden></button>`,
        ...(webhook_secret && { 'For webhook libraries': html`<code class="secret">${webhook_secret}</code>` }),
        Id: keyId ?? '–',
      })}<p><a class="button" href="${view.href('/keys')}">To the keys</a></p>`,
  }
}

export async function makeKey(view: View, form: URLSearchParams): Promise<Page> {
  const { title, params } = ownerOf(view)
  return shown(view, await view.call(`create${title}Key`, { params, body: { name: form.get('name') ?? '' } }))
}

export async function rotateKey(view: View, form: URLSearchParams): Promise<Page> {
  const { title, params } = ownerOf(view)
  const overlap_seconds = Number(form.get('overlap') ?? '0')
  return shown(view, await view.call(`rotate${title}Key`, { params, body: { overlap_seconds } }))
}

export async function revokeKey(view: View): Promise<string> {
  const { title, params } = ownerOf(view)
  await view.call(`revoke${title}Key`, { params })
  return view.href('/keys', { done: 'revoked' })
}

export async function merchantAccounts(view: View): Promise<Page> {
  if (!view.project) return { title: 'Merchant accounts', body: noProject(view) }
  const { organization_id } = projectOf(view)
  const data = await allOf(view.call, 'listMerchantAccounts', { params: { organization_id } })
  const content: Table = {
    caption: `Merchant accounts of ${organization_id}`,
    columns: ['Provider', 'Account', 'Region', 'Currencies', 'Changed'].map((label) => ({ label })),
    rows: data.map((one) => [
      one.psp,
      cell(id(one.psp_merchant_id), one.psp_merchant_id),
      one.region ?? '',
      one.currencies.length === 0 ? 'all' : one.currencies.join(', '),
      time(one.updated_at),
    ]),
  }
  return {
    title: 'Merchant accounts',
    body: html`${section(content.caption, table(view, 'merchant-accounts', content, { hideCaption: true, empty: html`<h3>No merchant account yet</h3><p>A saved card is charged where it was first paid with. Accounts come with an import of payments, or are made here.</p>` }), { note: 'Credentials of a provider are set at the command line, and never shown.' })}
      ${asking(view, {
        action: view.href('/merchant-accounts'),
        button: 'Make or set an account',
        says: 'An account that is there already gets these settings.',
        fields: html`${textField('psp', 'Provider', { required: true, hint: 'simulator, stripe' })}${textField('psp_merchant_id', 'Account there', { required: true })}${textField('region', 'Region')}${textField('currencies', 'Currencies', { hint: 'EUR, USD; empty: all' })}`,
      })}`,
  }
}

export async function setMerchantAccount(view: View, form: URLSearchParams): Promise<string> {
  const { organization_id } = projectOf(view)
  const params = { organization_id, psp: form.get('psp') ?? '', psp_merchant_id: form.get('psp_merchant_id') ?? '' }
  const currencies = (form.get('currencies') ?? '').split(/[\s,]+/).filter(Boolean)
  await view.call('setMerchantAccount', { params, body: { region: form.get('region') || null, currencies } })
  return view.href('/merchant-accounts', { done: 'saved' })
}

export async function settings(view: View): Promise<Page> {
  const organizations = await allOf(view.call, 'listOrganizations')
  const chosen = organizations.find(({ id }) => id === view.project?.organization_id)
  return {
    title: 'Settings',
    body: html`
      ${chosen && organizationSettings(view, chosen)}
      ${section('Organizations and projects', table(view, 'projects', projectTable(view, organizations), { hideCaption: true, empty: html`<h3>No organization yet</h3><p>Make one: it owns projects and takes the money.</p>` }))}
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
      }</div>
      ${
        view.project &&
        section(
          'Figures',
          asking(view, {
            action: view.href('/settings/figures'),
            button: 'Compute all figures again',
            says: 'All figures of this project are computed again from its records. They are shown meanwhile. Only needed when the doctor says so.',
          }),
        )
      }`,
  }
}

function organizationSettings(view: View, one: Answer): Html {
  const limits = Object.entries(one.one_off_charge_max_amount as Record<string, string>)
  return section(
    `Custom charges of ${one.name || one.id}`,
    html`${facts({
      Allowed: one.one_off_charge_enabled ? status('enabled') : status('disabled'),
      'Largest amounts': limits
        .map(([currency, amount]) => `${currency === '*' ? 'any currency' : currency} ${amount}`)
        .join(', '),
    })}
    ${asking(view, {
      action: view.href('/settings'),
      button: 'Change',
      danger: true,
      says: 'This decides whether the billing API may charge saved cards, and how much at once.',
      fields: html`${selectField('enabled', 'Custom charges', { '1': 'allowed', '': 'not allowed' }, one.one_off_charge_enabled ? '1' : '')}${textField('max', 'Largest amount in any currency', { value: one.one_off_charge_max_amount['*'] ?? '' })}`,
    })}`,
  )
}

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

export async function saveSettings(view: View, form: URLSearchParams): Promise<string> {
  const max = form.get('max')?.trim()
  await view.call('setOrganization', {
    params: { organization_id: projectOf(view).organization_id },
    body: {
      one_off_charge_enabled: form.get('enabled') === '1',
      ...(max && { one_off_charge_max_amount: { '*': max } }),
    },
  })
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
