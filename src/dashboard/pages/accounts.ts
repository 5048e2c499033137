// Merchant accounts: created, connected to their payment provider, disconnected.
import { adapters } from '../../providers/adapters.ts'
import { type Answer, allOf } from '../call.ts'
import { id, number, plural, status, time } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { asking, facts, hiddenField, section, selectField, textField } from '../parts.ts'
import { cell, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { table } from '../table.ts'
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
    columns: ['Provider', 'Account', 'Mode', 'Key', 'Connected', 'Region', 'Currencies', 'Change'].map((label) => ({
      label,
    })),
    rows: data.map((one) => [
      one.psp,
      cell(id(one.psp_merchant_id), one.psp_merchant_id),
      one.sandbox === null ? '' : status(one.sandbox ? 'test' : 'live'),
      one.key_last4 ? html`<code>…${one.key_last4}</code>` : '',
      time(one.connected_at),
      one.region ?? '',
      currenciesOf(one.currencies),
      changesOf(view, one),
    ]),
  }
  const empty = html`<h3>No merchant account yet</h3><p>A saved card is charged through the account of its first payment. Accounts come with an import of payments, or are added here.</p>`
  return {
    title: 'Merchant accounts',
    body: html`${section(
      content.caption,
      html`${table(view, 'merchant-accounts', content, { hideCaption: true, empty })}
      <div class="row">${connecting(
        view,
        'Connect an account',
        html`${selectField('psp', 'Provider', PROVIDERS)}${textField('psp_merchant_id', 'Account there', { required: true, hint: 'Such as acct_1NvR7aLkdIwHu7ix.' })}${credentials({ isNew: true, mode: '1' })}`,
      )}
      ${asking(view, {
        action: view.href(PATH),
        button: 'Set region and currencies',
        says: 'Of an account in the list, or of one that is added by this. Without keys it takes no charges: its payments come by an import.',
        fields: html`${textField('psp', 'Provider', { required: true, hint: 'simulator, stripe' })}${textField('psp_merchant_id', 'Account there', { required: true })}${textField('region', 'Region')}${textField('currencies', 'Currencies', { hint: 'EUR, USD; empty: all' })}`,
      })}</div>`,
      {
        note: html`Keys of a provider are stored encrypted and never shown again. Whether each account may charge is checked by <a href="${view.href('/doctor')}">the doctor</a>; how many payments are declined, and why, is at <a href="${view.href('/charges')}">Charges</a>.`,
      },
    )}
    ${view.project && (await importsOf(view, data))}`,
  }
}

// A longer list is folded.
const MOST_SHOWN = 8

function currenciesOf(codes: string[]): Piece {
  if (codes.length === 0) return 'all'
  const all = codes.join(', ')
  return codes.length <= MOST_SHOWN
    ? all
    : html`<details><summary>${plural(codes.length, 'currency', 'currencies')}</summary>${all}</details>`
}

function changesOf(view: View, one: Answer): Piece {
  if (!Object.hasOwn(PROVIDERS, one.psp)) return ''
  const which = html`${hiddenField('psp', one.psp)}${hiddenField('psp_merchant_id', one.psp_merchant_id)}`
  const mode = one.sandbox === false ? '' : '1'
  if (!one.connected_at) return connecting(view, 'Connect', html`${which}${credentials({ isNew: true, mode })}`)
  return html`<div class="acts">${asking(view, {
    action: view.href(`${PATH}/connect`),
    button: 'Replace keys',
    says: 'All processes use the new keys within a second. Empty fields stay as they are.',
    fields: html`${which}${hiddenField('sandbox', mode)}${credentials({ isNew: false })}`,
  })}
  ${asking(view, {
    action: view.href(`${PATH}/disconnect`),
    button: 'Disconnect',
    danger: true,
    says: 'Its keys are removed. Cards saved there cannot be charged until it is connected again, and refunds in progress wait. Its history stays.',
    fields: which,
  })}</div>`
}

const connecting = (view: View, button: string, fields: Piece) =>
  asking(view, {
    action: view.href(`${PATH}/connect`),
    button,
    says: 'The key is checked at the provider. Then cards that are saved there can be charged.',
    fields,
  })

const credentials = ({ isNew, mode }: { isNew: boolean; mode?: string }) =>
  html`${mode !== undefined && selectField('sandbox', 'Mode', MODES, mode)}
  ${textField('secret_key', 'Secret key', { type: 'password', required: isNew })}
  ${textField('webhook_secrets', 'Signing secrets of its notifications', { type: 'password', hint: 'Several separated by blanks, while one replaces another.' })}`

export async function connect(view: View, form: URLSearchParams): Promise<Page> {
  const secrets = wordsOf(form, 'webhook_secrets')
  const secretKey = form.get('secret_key')?.trim()
  const found: Answer = await view.call('connectMerchantAccount', {
    params: nameOf(view, form),
    body: {
      sandbox: form.get('sandbox') === '1',
      ...(secretKey && { secret_key: secretKey }),
      ...(secrets.length > 0 && { webhook_secrets: secrets }),
    },
  })
  return {
    title: 'Account connected',
    body: html`<p class="done" role="status">${PROVIDERS[found.psp]} accepted the key. It is used from now on.</p>
      ${facts({
        Account: html`${found.provider_account_name} ${id(found.provider_account ?? found.psp_merchant_id)}`,
        Mode: status(found.sandbox ? 'test' : 'live'),
        Key: html`<code>…${found.key_last4}</code>`,
        'May charge':
          found.charges_enabled === null
            ? 'unknown'
            : found.charges_enabled
              ? 'yes'
              : 'not yet, according to the provider',
        Currencies: found.currencies.join(', ') || 'all',
        'Secrets of notifications': number(found.webhook_secrets),
        'Notifications go to': id(found.notifications_path),
      })}
      <p>Set this path, at the address of the billing API, as the endpoint of the provider’s notifications. <a href="/docs/guides/stripe">How to set it up</a>.</p>
      <p><a class="button" href="${view.href(PATH)}">To the merchant accounts</a></p>`,
  }
}

export async function disconnect(view: View, form: URLSearchParams): Promise<string> {
  await view.call('disconnectMerchantAccount', { params: nameOf(view, form) })
  return view.href(PATH, { done: 'disconnected' })
}

export async function setMerchantAccount(view: View, form: URLSearchParams): Promise<string> {
  const currencies = wordsOf(form, 'currencies')
  const body = { region: form.get('region') || null, currencies }
  await view.call('setMerchantAccount', { params: nameOf(view, form), body })
  return view.href(PATH, { done: 'saved' })
}

/** The words of a field, separated by blanks or commas. */
const wordsOf = (form: URLSearchParams, field: string) => (form.get(field) ?? '').split(/[\s,]+/).filter(Boolean)

const nameOf = (view: View, form: URLSearchParams) => ({
  organization_id: organizationOf(view).id,
  psp: form.get('psp')?.trim() ?? '',
  psp_merchant_id: form.get('psp_merchant_id')?.trim() ?? '',
})
