// The section about imports from Stripe on the page of merchant accounts.
import type { Result } from '../call.ts'
import { id, number, status, time } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { actionForm, hiddenField, selectField, tableSection, textField } from '../parts.ts'
import { cell, type Table } from '../sheet.ts'
import { projectOf, type View } from '../view.ts'

const PATH = '/merchant-accounts'

/** The imports of Stripe accounts into the project, at most one for each account, and the form that starts one. */
export async function importsOf(view: View, accounts: Result[]): Promise<Piece> {
  const params = { project_id: projectOf(view).id }
  const { data }: Result = await view.call('listStripeImports', { params })
  const connected = accounts.filter(({ psp, connected_at }) => psp === 'stripe' && connected_at)
  if (data.length === 0 && connected.length === 0) return ''
  const content: Table = {
    caption: 'Imports from Stripe',
    columns: [
      ...['Account', 'Status', 'Step', 'Since', 'Last update'].map((label) => ({ label })),
      ...['Read', 'Rejected'].map((label) => ({ label, number: true })),
      { label: 'Actions', actions: ['/merchant-accounts/import', '/merchant-accounts/import/stop'] },
    ],
    rows: data.map((one: Result) => [
      cell(id(one.psp_merchant_id), one.psp_merchant_id),
      html`${status(one.status)} ${one.error && html`<span class="quiet">${one.error}</span>`}`,
      one.step ?? '',
      time(one.since),
      time(one.updated_at),
      cell(number(one.read), one.read),
      cell(number(one.rejected), one.rejected),
      ['waiting', 'running', 'following'].includes(one.status) &&
        actionForm(view, {
          action: view.href(`${PATH}/import/stop`),
          button: 'Stop',
          explanation:
            'Imported records are kept. If you start the import again with the same options, it continues where it stopped.',
          fields: hiddenField('psp_merchant_id', one.psp_merchant_id),
        }),
    ]),
  }
  const names = Object.fromEntries(connected.map(({ psp_merchant_id }) => [psp_merchant_id, psp_merchant_id]))
  return tableSection(view, 'stripe-imports', content, {
    empty: html`<p>No imports from Stripe into this project yet.</p>`,
    below:
      connected.length > 0 &&
      actionForm(view, {
        action: view.href(`${PATH}/import`),
        button: 'Import from Stripe',
        explanation:
          'Imports the customers, products, subscriptions, payments, refunds, disputes and saved cards of the account in the background. Importing again creates no duplicates.',
        fields: html`${selectField('psp_merchant_id', 'Account', names)}${textField('since', 'Only records created since', { type: 'date', hint: 'Leave empty to import everything.' })}${selectField('follow', 'Afterwards', { '1': 'keep importing changes', '': 'stop' }, '1')}`,
      }),
  })
}

export async function startImport(view: View, form: URLSearchParams): Promise<string> {
  const since = form.get('since')
  await view.call('startStripeImport', {
    params: { project_id: projectOf(view).id, psp_merchant_id: form.get('psp_merchant_id') ?? '' },
    body: { follow: form.get('follow') === '1', ...(since && { since: `${since}T00:00:00Z` }) },
  })
  return view.href(PATH, { done: 'started' })
}

export async function stopImport(view: View, form: URLSearchParams): Promise<string> {
  const psp_merchant_id = form.get('psp_merchant_id') ?? ''
  await view.call('stopStripeImport', { params: { project_id: projectOf(view).id, psp_merchant_id } })
  return view.href(PATH, { done: 'stopped' })
}
