// Payouts: what reached the bank, what each consists of, and what is still at the provider.
import { dateOf } from '../../../lib/days.ts'
import type { Item, Response } from '../call.ts'
import { id, money, number, status, time, words } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { listed, pageLinks } from '../lists.ts'
import { actionForm, filters, hiddenField, pageLink, tableSection, textField } from '../parts.ts'
import { amountCells, amountColumns, type Cell, cell, columns, numbers, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { organizationOf, type View } from '../view.ts'
import { amount } from './finance-tables.ts'

type Account = Pick<Item<'listPayouts'>, 'psp' | 'psp_merchant_id' | 'test'>

const MATCHED = { true: 'Found at the bank', false: 'Not found yet' }

export async function payouts(view: View): Promise<Page> {
  const title = 'Payouts'
  if (!view.organization) return { title, body: noProject(view) }
  const params = { organization_id: view.organization.id }
  const [payout, matched] = [view.query.get('payout'), view.query.get('matched')]
  const [balance, made, missing, entries] = await Promise.all([
    view.call('getUnpaidBalance', { params }),
    listed(
      view,
      'payouts',
      'listPayouts',
      { params, query: matched ? { matched: matched === 'true' } : {} },
      { cursor: 'cursor_payouts' },
    ),
    listed(view, 'unknown', 'listBalanceEntries', { params, query: { unknown: true } }, { cursor: 'cursor_unknown' }),
    payout
      ? listed(
          view,
          'entries',
          'listBalanceEntries',
          { params, query: { payout_id: payout } },
          { cursor: 'cursor_entries', rows: 100 },
        )
      : undefined,
  ])
  return {
    title,
    question: 'What reached the bank, what does each payout consist of, and what is still at the provider?',
    body: html`${entries && tableSection(view, 'entries', { ...entryTable(entries.data), of: [payout!] }, { title: `Payout ${payout}`, empty: html`<p>No entries of this payout are known.</p>`, below: pageLinks(view, entries) })}
      ${tableSection(view, 'balance', balanceTable(balance.data), { note: 'By account and currency of the balance. Test accounts are marked.', empty: html`<p>Nothing is waiting to be paid out. An ${pageLink(view, '/merchant-accounts', 'import from Stripe')} reads the balance and the payouts.</p>` })}
      ${tableSection(view, 'payouts', payoutTable(view, made.data), {
        above: filters(view, [{ name: 'matched', label: 'Bank', options: MATCHED }]),
        empty: html`<p>No payouts.</p>`,
        below: pageLinks(view, made),
      })}
      ${tableSection(view, 'unknown', entryTable(missing.data), {
        title: 'In the balance, but not known here',
        note: 'Payments, refunds and disputes of the provider’s account that have no row in the payment report.',
        empty: html`<p>Every payment in the balance is known here.</p>`,
        below: pageLinks(view, missing),
      })}`,
  }
}

const account = ({ psp, psp_merchant_id, test }: Account): Cell =>
  cell(
    html`${words(psp)} ${psp_merchant_id}${test && html` <span class="badge flat">test</span>`}`,
    `${psp} ${psp_merchant_id}${test ? ' (test)' : ''}`,
  )

function balanceTable(data: Response<'getUnpaidBalance'>['data']): Table {
  return {
    caption: 'Not paid out yet',
    columns: [...columns('Account'), ...amountColumns('Balance'), ...numbers('Entries'), ...columns('Oldest')],
    rows: data.map((one) => [
      account(one),
      ...amountCells({ amount: one.net, currency_code: one.currency_code }),
      cell(number(one.entries), one.entries),
      time(one.oldest),
    ]),
  }
}

const PARTS = {
  charged: 'Payments',
  refunded: 'Refunds',
  fees: 'Fees',
  account_fees: 'Account fees',
  adjusted: 'Adjustments',
}

function payoutTable(view: View, data: Item<'listPayouts'>[]): Table {
  return {
    caption: 'Payouts',
    columns: [
      { label: 'Payout' },
      ...amountColumns('Amount'),
      ...columns('Arrives', 'Status', 'Bank'),
      { label: 'Actions', actions: ['/payouts/match'] },
      ...numbers(...Object.values(PARTS), 'Difference'),
      { label: 'Account' },
    ],
    rows: data.map((one) => [
      cell(id(one.payout_id, view.href(view.path, { payout: one.payout_id })), one.payout_id),
      ...amountCells(one),
      cell(dateOf(one.arrives_on, view.span.today), one.arrives_on),
      status(one.status),
      cell(
        one.matched_at
          ? html`${isBack(one) ? html`<span class="badge poor">went back</span>` : html`<span class="badge good">found</span>`} ${one.bank_day && dateOf(one.bank_day, view.span.today)}${one.bank_reference && html`<br><span class="quiet">${one.bank_reference}</span>`}`
          : '–',
        one.bank_day,
      ),
      bankForm(view, one),
      ...(Object.keys(PARTS) as (keyof typeof PARTS)[]).map((name) => amount(one[name], one.currency_code)),
      amount(one.difference, one.currency_code),
      account(one),
    ]),
  }
}

/** Whether its money is in the balance again. A bank can return it days after it arrived. */
const isBack = ({ status }: Item<'listPayouts'>) => status === 'failed' || status === 'canceled'

function bankForm(view: View, one: Item<'listPayouts'>): Piece {
  const which = (['psp', 'psp_merchant_id', 'payout_id'] as const).map((name) => hiddenField(name, one[name]))
  if (one.matched_at)
    return actionForm(view, {
      action: view.href('/payouts/unmatch'),
      button: 'Remove',
      explanation: 'Removes the line of the bank from this payout.',
      fields: which,
    })
  if (isBack(one)) return ''
  return actionForm(view, {
    action: view.href('/payouts/match'),
    button: 'Tick off',
    explanation: `Notes that ${textOfAmount(one)} ${one.amount < 0 ? 'was taken from the bank account' : 'arrived at the bank'}.`,
    fields: html`${which}${hiddenField('amount', String(one.amount))}
      ${textField('day', 'Day of the line', { value: one.arrives_on, type: 'day', required: true })}
      ${textField('reference', 'Reference', { hint: 'What identifies the line at the bank.' })}`,
  })
}

const textOfAmount = ({ amount: value, currency_code }: Item<'listPayouts'>) =>
  String(money(Math.abs(value), currency_code))

function entryTable(data: Item<'listBalanceEntries'>[]): Table {
  return {
    caption: 'Entries',
    columns: [
      { label: 'Entry' },
      ...amountColumns('Net'),
      { label: 'Type' },
      ...numbers('Amount', 'Fee'),
      ...columns('Source', 'Here', 'When', 'Description'),
    ],
    rows: data.map((one) => [
      cell(id(one.entry_id), one.entry_id),
      ...amountCells({ amount: one.net, currency_code: one.currency_code }),
      words(one.type),
      amount(one.amount, one.currency_code),
      amount(-one.fee, one.currency_code),
      cell(one.source && id(one.source), one.source),
      one.here === null ? '' : one.here ? 'yes' : html`<span class="badge warn">no</span>`,
      time(one.entered_at),
      one.description,
    ]),
  }
}

const pathOf = (view: View, form: URLSearchParams) => ({
  organization_id: organizationOf(view).id,
  psp: form.get('psp') ?? '',
  psp_merchant_id: form.get('psp_merchant_id') ?? '',
  payout_id: form.get('payout_id') ?? '',
})

export async function matchPayout(view: View, form: URLSearchParams): Promise<string> {
  const reference = form.get('reference')
  const body = { day: form.get('day') ?? '', amount: form.get('amount') ?? '', ...(reference && { reference }) }
  await view.call('matchPayout', { params: pathOf(view, form), body })
  return view.href('/payouts', { done: 'matched' })
}

export async function unmatchPayout(view: View, form: URLSearchParams): Promise<string> {
  await view.call('unmatchPayout', { params: pathOf(view, form) })
  return view.href('/payouts', { done: 'unmatched' })
}
