// Merchant accounts: the list, and the forms that add, connect and disconnect one.
import { adapters } from '../../../payments/providers/adapters.ts'
import { allOf, type Item } from '../call.ts'
import { id, number, plural, status, time } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { actionForm, facts, hiddenField, pageLink, selectField, tableSection, textField } from '../parts.ts'
import { cell, columns, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { organizationOf, type View } from '../view.ts'
import { importsOf } from './stripe-imports.ts'

const PATH = '/merchant-accounts'
const PROVIDERS = Object.fromEntries(Object.entries(adapters).map(([psp, adapter]) => [psp, adapter!.title]))
const MODES = { '1': 'test: no money moves', '': 'live: real money moves' }

export async function merchantAccounts(view: View): Promise<Page> {
  if (!view.organization) return { title: 'Merchant accounts', body: noProject(view) }
  const { id: organization_id, name } = organizationOf(view)
  const data = await allOf(view.call, 'listMerchantAccounts', { params: { organization_id } })
  const content: Table = {
    caption: `Merchant accounts of ${name || organization_id}`,
    columns: [
      ...columns('Provider', 'Account', 'Mode', 'Key', 'Connected', 'Region', 'Currencies'),
      { label: 'Actions', actions: [`${PATH}/connect`, `${PATH}/disconnect`] },
    ],
    rows: data.map((one) => [
      one.psp,
      cell(id(one.psp_merchant_id), one.psp_merchant_id),
      one.sandbox === null ? '' : status(one.sandbox ? 'test' : 'live'),
      one.key_last4 ? html`<code>…${one.key_last4}</code>` : '',
      time(one.connected_at),
      one.region ?? '',
      cell(currenciesOf(one.currencies), one.currencies.join(' ')),
      actionsOf(view, one),
    ]),
  }
  const empty = html`<h3>No merchant accounts yet</h3><p>Connect an account to charge saved cards. An import of payments also adds their accounts.</p>`
  return {
    title: 'Merchant accounts',
    question: 'Through which accounts is money taken, and are they connected?',
    body: html`${tableSection(view, 'merchant-accounts', content, {
      empty,
      note: html`A saved card is charged through the account of the customer’s latest payment. Provider keys are stored encrypted and never shown again. ${pageLink(view, '/doctor', 'Doctor')} checks whether each account can charge; <a href="${view.href('/charges')}">Charges</a> has the acceptance rate of each, and the reasons of declines.`,
      below: html`<div class="row">${connecting(
        view,
        'Connect an account',
        html`${selectField('psp', 'Provider', PROVIDERS)}${textField('psp_merchant_id', 'Account ID', { required: true, hint: 'A name that you choose, for example shop-test; imported payments name the account by it.' })}${credentials({ isNew: true, mode: '1' })}`,
      )}
      ${actionForm(view, {
        action: view.href(PATH),
        button: 'Set region and currencies',
        explanation:
          'For an account in the list, or for a new one. A new account takes no charges until it is connected.',
        fields: html`${textField('psp', 'Provider', { required: true, hint: 'For example simulator or stripe' })}${textField('psp_merchant_id', 'Account ID', { required: true })}${textField('region', 'Region')}${textField('currencies', 'Currencies', { hint: 'For example EUR, USD. Leave empty for all.' })}`,
      })}</div>`,
    })}
    ${view.project && (await importsOf(view, data))}`,
  }
}

// A longer list is collapsed.
const MAX_SHOWN = 8

function currenciesOf(codes: string[]): Piece {
  if (codes.length === 0) return 'all'
  const all = codes.join(', ')
  return codes.length <= MAX_SHOWN
    ? all
    : html`<details><summary>${plural(codes.length, 'currency', 'currencies')}</summary>${all}</details>`
}

function actionsOf(view: View, one: Item<'listMerchantAccounts'>): Piece {
  if (!Object.hasOwn(PROVIDERS, one.psp)) return ''
  const which = html`${hiddenField('psp', one.psp)}${hiddenField('psp_merchant_id', one.psp_merchant_id)}`
  const mode = one.sandbox === false ? '' : '1'
  if (!one.connected_at) return connecting(view, 'Connect', html`${which}${credentials({ isNew: true, mode })}`)
  return html`<div class="acts">${actionForm(view, {
    action: view.href(`${PATH}/connect`),
    button: 'Replace keys',
    explanation: 'The new keys are used within a second. A field that you leave empty keeps its value.',
    fields: html`${which}${hiddenField('sandbox', mode)}${credentials({ isNew: false })}`,
  })}
  ${actionForm(view, {
    action: view.href(`${PATH}/disconnect`),
    button: 'Disconnect',
    danger: true,
    explanation:
      'Deletes the keys of this account. Until it is connected again, cards saved in it cannot be charged and refunds in progress wait. Past payments are kept.',
    fields: which,
  })}</div>`
}

const connecting = (view: View, button: string, fields: Piece) =>
  actionForm(view, {
    action: view.href(`${PATH}/connect`),
    button,
    explanation: 'The key is checked with the provider. Then cards saved in this account can be charged.',
    fields,
  })

const credentials = ({ isNew, mode }: { isNew: boolean; mode?: string }) =>
  html`${mode !== undefined && selectField('sandbox', 'Mode', MODES, mode)}
  ${textField('secret_key', 'Secret key', { type: 'password', required: isNew })}
  ${textField('webhook_secrets', 'Webhook signing secret', { type: 'password', hint: 'While you rotate it: both, separated by a space.' })}`

export async function connect(view: View, form: URLSearchParams): Promise<Page> {
  const secrets = valuesOf(form, 'webhook_secrets')
  const secretKey = form.get('secret_key')
  const found = await view.call('connectMerchantAccount', {
    params: nameOf(view, form),
    body: {
      sandbox: form.get('sandbox') === '1',
      ...(secretKey && { secret_key: secretKey }),
      ...(secrets.length > 0 && { webhook_secrets: secrets }),
    },
  })
  return {
    title: 'Account connected',
    body: html`<p class="done" role="status">${PROVIDERS[found.psp]} accepted the key. Charges use it from now on.</p>
      ${facts({
        Account: html`${found.provider_account_name} ${id(found.provider_account ?? found.psp_merchant_id)}`,
        Mode: status(found.sandbox ? 'test' : 'live'),
        Key: html`<code>…${found.key_last4}</code>`,
        'Charges enabled':
          found.charges_enabled === null
            ? 'unknown'
            : found.charges_enabled
              ? 'yes'
              : 'not yet, according to the provider',
        ...(found.missing_permissions?.length && { 'Missing permissions': found.missing_permissions.join(', ') }),
        Currencies: currenciesOf(found.currencies),
        'Webhook signing secrets': number(found.webhook_secrets),
        'Webhook path': id(found.notifications_path),
      })}
      <p>Next: at the provider, add a webhook endpoint with this path at the URL of your billing API. <a href="/docs/guides/stripe">How to set it up</a>.</p>
      <p><a class="button" href="${view.href(PATH)}">Back to merchant accounts</a></p>`,
  }
}

export async function disconnect(view: View, form: URLSearchParams): Promise<string> {
  await view.call('disconnectMerchantAccount', { params: nameOf(view, form) })
  return view.href(PATH, { done: 'disconnected' })
}

export async function setMerchantAccount(view: View, form: URLSearchParams): Promise<string> {
  const currencies = valuesOf(form, 'currencies')
  const body = { region: form.get('region') || null, currencies }
  await view.call('setMerchantAccount', { params: nameOf(view, form), body })
  return view.href(PATH, { done: 'saved' })
}

/** The values of a field, separated by spaces or commas. */
const valuesOf = (form: URLSearchParams, field: string) => (form.get(field) ?? '').split(/[\s,]+/).filter(Boolean)

const nameOf = (view: View, form: URLSearchParams) => ({
  organization_id: organizationOf(view).id,
  psp: form.get('psp') ?? '',
  psp_merchant_id: form.get('psp_merchant_id') ?? '',
})
