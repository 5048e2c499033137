// The section about imports from Stripe on the page of merchant accounts.
import { readDay } from '../../../lib/days.ts'
import { formatMinor, readMinor } from '../../../lib/money.ts'
import type { Item } from '../call.ts'
import { id, minorMoney, number, status, time, words } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { actionForm, hiddenField, selectField, tableSection, textField } from '../parts.ts'
import { cell, columns, numbers, type Table } from '../sheet.ts'
import { projectOf, type View } from '../view.ts'

const PATH = '/merchant-accounts'

/** The imports of Stripe accounts into the project, at most one for each account, and the form that starts one. */
export async function importsOf(view: View, accounts: Item<'listMerchantAccounts'>[]): Promise<Piece> {
  const params = { project_id: projectOf(view).id }
  const { data } = await view.call('listStripeImports', { params })
  const connected = accounts.filter(({ psp, connected_at }) => psp === 'stripe' && connected_at)
  if (data.length === 0 && connected.length === 0) return ''
  const content: Table = {
    caption: 'Imports from Stripe',
    columns: [
      ...columns('Account', 'Status', 'Step', 'Since', 'Last update'),
      ...numbers('Read', 'Rejected'),
      { label: 'Actions', actions: ['/merchant-accounts/import', '/merchant-accounts/import/stop'] },
    ],
    rows: data.map((one) => [
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
  const sums = await Promise.all(data.filter((one) => one.finished_at).map((one) => sumsOf(view, one)))
  return html`${tableSection(view, 'stripe-imports', content, {
    empty: html`<p>No imports from Stripe into this project yet.</p>`,
    below:
      connected.length > 0 &&
      actionForm(view, {
        action: view.href(`${PATH}/import`),
        button: 'Import from Stripe',
        explanation:
          'Imports the customers, products, subscriptions, payments, refunds, disputes and saved cards of the account in the background. Importing again creates no duplicates.',
        fields: html`${selectField('psp_merchant_id', 'Account', names)}${textField('since', 'Only records created since', { type: 'day', hint: 'Leave empty to import everything.' })}${selectField('follow', 'Afterwards', { '1': 'keep importing changes', '': 'stop' }, '1')}`,
      }),
  })}${sums}`
}

/** The numbers and sums of a finished import, at Stripe and here, over all months. */
async function sumsOf(view: View, { psp_merchant_id }: { psp_merchant_id: string }): Promise<Piece> {
  const params = { project_id: projectOf(view).id, psp_merchant_id }
  const { figures, differences } = await view.call('getStripeImport', { params })
  const groups = Map.groupBy(figures, ({ kind, currency }) => `${kind} ${currency ?? ''}`)
  const content: Table = {
    caption: `Import of ${psp_merchant_id}`,
    columns: [...columns('Records', 'Currency'), ...numbers('At Stripe', 'Sum at Stripe', 'Here', 'Sum here')],
    rows: [...groups.values()].map((own) => {
      const { kind, currency } = own[0]!
      const count = (field: 'stripe_count' | 'here_count') => own.reduce((all, one) => all + one[field], 0)
      const sum = (field: 'stripe_sum' | 'here_sum') =>
        currency === null
          ? cell('', null)
          : amountCell(
              own.reduce((all, one) => all + minorOf(one[field], currency), 0n),
              currency,
            )
      const [there, here] = [count('stripe_count'), count('here_count')]
      return [
        words(kind),
        currency ?? '',
        cell(number(there), there),
        sum('stripe_sum'),
        cell(number(here), here),
        sum('here_sum'),
      ]
    }),
  }
  return tableSection(view, `sums-${psp_merchant_id.replace(/[^A-Za-z0-9-]/g, '-')}`, content, {
    note:
      differences.length === 0
        ? 'All records at Stripe are here, to the cent.'
        : `${differences.length} months differ: tundish stripe-import show lists them.`,
  })
}

const minorOf = (amount: string | null, currency: string) => (amount === null ? 0n : readMinor(amount, currency))

const amountCell = (minor: bigint, currency: string) =>
  cell(minorMoney(String(minor), currency), formatMinor(minor, currency))

export async function startImport(view: View, form: URLSearchParams): Promise<string> {
  const since = form.get('since')
  await view.call('startStripeImport', {
    params: { project_id: projectOf(view).id, psp_merchant_id: form.get('psp_merchant_id') ?? '' },
    body: { follow: form.get('follow') === '1', ...(since && { since: `${readDay('since', since)}T00:00:00Z` }) },
  })
  return view.href(PATH, { done: 'started' })
}

export async function stopImport(view: View, form: URLSearchParams): Promise<string> {
  const psp_merchant_id = form.get('psp_merchant_id') ?? ''
  await view.call('stopStripeImport', { params: { project_id: projectOf(view).id, psp_merchant_id } })
  return view.href(PATH, { done: 'stopped' })
}
