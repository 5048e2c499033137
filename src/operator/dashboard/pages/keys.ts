// Keys: those of the project and its organization can be created, rotated and revoked; operator keys are only listed.
import { mayMakeKey } from '../../../core/tenants/scopes.ts'
import { allOf, type Item, type Response } from '../call.ts'
import { id, status, time } from '../format.ts'
import { type Html, html, type Piece } from '../html.ts'
import { actionForm, facts, selectField, tableSection, textField } from '../parts.ts'
import { cell, columns, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { organizationOf, pathOf, type View } from '../view.ts'

type NewKey = Pick<Response<'createProjectKey'>, 'id' | 'secret_key' | 'webhook_secret'>

type Owner = 'organization' | 'project'

export async function keys(view: View): Promise<Page> {
  if (!view.organization) return { title: 'Keys', body: noProject(view) }
  const { id: organization_id } = organizationOf(view)
  const project_id = view.project?.id
  const [ofProject, ofOrganization, operators] = await Promise.all([
    project_id === undefined ? undefined : allOf(view.call, 'listProjectKeys', { params: { project_id } }),
    view.may('listOrganizationKeys') && allOf(view.call, 'listOrganizationKeys', { params: { organization_id } }),
    view.may('listOperators') && allOf(view.call, 'listOperators'),
  ])
  return {
    title: 'Keys',
    question: 'Which keys are there, and what may each do?',
    body: html`
      ${ofProject && owned(view, 'project', view.project!, ofProject, 'For the data API of this project. Its webhooks are signed with them.')}
      ${ofOrganization && owned(view, 'organization', view.organization, ofOrganization, 'For the billing API of this organization.')}
      ${operators && tableSection(view, 'operators', operatorTable(view, operators), { note: 'For this dashboard and the operator’s API. They can only be created and revoked on the command line, so that a stolen key cannot create others.' })}`,
  }
}

function owned(
  view: View,
  owner: Owner,
  one: { id: string; name: string },
  data: Item<'listProjectKeys'>[],
  note: string,
): Html {
  const path = pathOf('keys', owner, one.id)
  const { access } = view.session
  const content: Table = {
    caption: `Keys of the ${owner} ${one.name || one.id}`,
    columns: [
      ...columns('Name', 'Key', 'May', 'Rate limit', 'Ends with', 'Created', 'Last used', 'Expires'),
      { label: 'Actions', actions: [`${path}/key/rotate`] },
    ],
    rows: validFirst(view, data).map((one) => [
      one.name || 'First key',
      cell(id(one.id), one.id),
      one.scopes?.replaceAll(',', ', ') ?? 'everything',
      one.rate_limit ?? 'as the others',
      one.last_four ?? '',
      time(one.created_at),
      time(one.last_used_at),
      time(one.expires_at),
      isExpired(view, one)
        ? status('expired')
        : html`<div class="acts">${mayMakeKey(access, one.scopes?.split(',') ?? null) && actionForm(view, { action: view.href(`${path}/${one.id}/rotate`), button: 'Rotate', explanation: 'Creates a key with the same name and shows it once. The old key stays valid for as long as you choose.', fields: selectField('overlap', 'The old key expires', { '0': 'immediately', '3600': 'in an hour', '86400': 'in a day', '604800': 'in a week' }, '86400') })}
          ${actionForm(view, { action: view.href(`${path}/${one.id}/revoke`), button: 'Revoke', danger: true, explanation: 'Requests with this key are refused from now on. This cannot be undone.' })}</div>`,
    ]),
  }
  return tableSection(view, `${owner}-keys`, content, {
    note,
    below: actionForm(view, {
      action: view.href(path),
      button: 'Create a key',
      explanation:
        'The key is shown once, on the next page. A program should have a key that may do what it needs, and no more.',
      fields: html`${textField('name', 'Name', { required: true, hint: 'For example: reporting server' })}${scopeFields(view, owner)}${selectField('expires', 'Expires', EXPIRIES)}${textField('rate_limit', 'Rate limit', { hint: 'Requests per second, such as 20, or 20/100 with a burst of 100. Empty: as the other keys.' })}`,
    }),
  })
}

const SCOPES = {
  project: { read: 'read records', write: 'write records', erase: 'erase people' },
  organization: {
    charge: 'charge saved cards, and spend credits',
    refund: 'refund charges',
    report: 'read reports, assets and balances',
  },
}
const EXPIRIES = { '': 'never', '2592000': 'in 30 days', '7776000': 'in 90 days', '31536000': 'in a year' }

const scopeFields = ({ session: { access } }: View, owner: Owner) =>
  html`<fieldset><legend>May</legend>${Object.entries(SCOPES[owner])
    .filter(([scope]) => mayMakeKey(access, [scope]))
    .map(
      ([scope, what]) =>
        html`<p class="field"><label><input type="checkbox" name="scope" value="${scope}"> ${what}</label></p>`,
    )}<p class="quiet">${mayMakeKey(access, null) ? 'Without a choice the key may do everything.' : 'Keys that may do more are made by owners.'}</p></fieldset>`

const isExpired = ({ nowMs }: View, { expires_at }: { expires_at: string | null }) =>
  expires_at !== null && Date.parse(expires_at) <= nowMs

/** The page shows the first hundred: a valid key must not be hidden behind newer ones that have ended. */
const validFirst = <T extends { expires_at: string | null }>(view: View, data: readonly T[]): T[] =>
  data.toSorted((a, b) => Number(isExpired(view, a)) - Number(isExpired(view, b)))

const operatorTable = (view: View, data: Item<'listOperators'>[]): Table => ({
  caption: 'Operator keys',
  columns: columns('Name', 'Key', 'Role', 'Reach', 'Created', 'Last used', 'Expires'),
  rows: validFirst(view, data).map((one) => [
    one.name,
    cell(id(one.id), one.id),
    html`${one.role}${limitsOf(one)}`,
    one.reach,
    time(one.created_at),
    time(one.last_used_at),
    time(one.expires_at),
  ]),
})

/** What `support` may refund of one charge. */
const limitsOf = ({ refund_limits }: Item<'listOperators'>): Piece =>
  refund_limits &&
  html`<br><span class="quiet">${
    Object.entries(refund_limits)
      .map(([currency, amount]) => `refunds up to ${amount} ${currency}`)
      .join(', ') || 'no refunds'
  }</span>`

/** How the ids of the operations name the owner: `createProjectKey`. */
const OPERATIONS = { organization: 'Organization', project: 'Project' } as const

function ownerOf(view: View) {
  const owner: Owner = view.params.owner === 'organization' ? 'organization' : 'project'
  const params = { [`${owner}_id`]: view.params.owner_id!, ...(view.params.key_id && { key_id: view.params.key_id }) }
  return { owner, title: OPERATIONS[owner], params }
}

interface Made {
  title: string
  /** Says what was created, and that its key is shown now. */
  message: string
  /** The link to where its owner goes on. */
  next: Html
}

/** The page that shows a new key. It is the response to the form: the key is not stored, and cannot be shown again. */
export function shown({ id: ownId, secret_key, webhook_secret }: NewKey, { title, message, next }: Made): Page {
  return {
    title,
    body: html`<p class="done" role="status">${message} is shown only now: store it where you keep secrets.</p>
      ${facts({
        Key: secret(secret_key, 'the key'),
        ...(webhook_secret && { 'Webhook signing secret': secret(webhook_secret, 'the signing secret') }),
        ID: id(ownId),
      })}<p>${next}</p>`,
  }
}

const secret = (text: string, what: string) =>
  html`<code class="secret">${text}</code> <button type="button" class="copy" data-copy="${text}" aria-label="Copy ${what}" hidden></button>`

export async function makeKey(view: View, form: URLSearchParams): Promise<Page> {
  const { title, params } = ownerOf(view)
  const [scope, expires, rate] = [form.getAll('scope'), form.get('expires'), form.get('rate_limit')]
  const body = {
    name: form.get('name') ?? '',
    ...(scope.length > 0 && { scope }),
    ...(expires && { expires_seconds: Number(expires) }),
    ...(rate && { rate_limit: rate }),
  }
  return shownKey(view, await view.call(`create${title}Key` as const, { params, body }))
}

export async function rotateKey(view: View, form: URLSearchParams): Promise<Page> {
  const { title, params } = ownerOf(view)
  const overlap_seconds = Number(form.get('overlap') ?? '0')
  return shownKey(view, await view.call(`rotate${title}Key` as const, { params, body: { overlap_seconds } }))
}

const shownKey = (view: View, key: Response<'createProjectKey'>): Page =>
  shown(key, {
    title: 'New key',
    message: `The key ${key.name ? `“${key.name}” ` : ''}was created. It`,
    next: html`<a class="button" href="${view.href('/keys')}">Back to keys</a>`,
  })

export async function revokeKey(view: View): Promise<string> {
  const { title, params } = ownerOf(view)
  await view.call(`revoke${title}Key` as const, { params })
  return view.href('/keys', { done: 'revoked' })
}
