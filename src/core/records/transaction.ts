// A transaction: the API's shape, which events show too, and the import's fields.
import { boolean, instant, integer, shape, text } from '../../lib/shape/shape.ts'
import { nestedFunnel } from './funnel.ts'
import { required } from './import/fields.ts'
import { currency, minor } from './import/money-types.ts'
import * as from from './import/types.ts'
import { all, field, importedOnly, record, shownFields, shownOnly } from './record.ts'

const fields = {
  id: field(text('Identifier.', { example: 'trn_01JZ8Q6V9M3T0R5K7W2X4Y6Z8A' }), required(from.id)),
  created_at: field(instant('When it was created.'), required(from.past)),
  updated_at: importedOnly(from.past),
  session_id: field(text('Session in which it was made.', { nullable: true }), from.id, { refersTo: 'session' }),
  profile_id: field(
    text('Profile that it belongs to.', { example: 'pro_01JZ8Q6V9M3T0R5K7W2X4Y6Z8A' }),
    required(from.id),
    {
      refersTo: 'profile',
    },
  ),
  funnel_id: field(text('Funnel it was made through.', { nullable: true }), from.id, { refersTo: 'funnel' }),
  funnel: shownOnly(nestedFunnel('The funnel.')),
  funnel_version: field(integer('Version of the funnel.', { nullable: true }), from.integer(0)),
  currency: field(text('ISO 4217 code.', { example: 'USD' }), required(currency)),
  price: field(
    integer('Amount in the minor unit of the currency: 1999 with USD is $19.99.', { example: 1999 }),
    required(minor),
  ),
  price_usd: field(integer('Amount in US cents.', { nullable: true, example: 1999 }), minor),
  sandbox: field(boolean('Whether it is test data.'), from.boolean),
  funnel_locale: field(text('Language of the funnel.', { nullable: true, example: 'en' }), from.label),
  experiment_id: field(text('Experiment that the session took part in.', { nullable: true }), from.id, {
    refersTo: 'experiment',
  }),
  subscription_id: importedOnly(from.id, { refersTo: 'subscription' }),
}

export const transactionRecord = record({
  name: 'transaction',
  table: 'transactions',
  fields,
  counts: { '': all },
})

const shown = shownFields(fields)

export const transaction = shape('Transaction', 't', shown)

/** As the export shows it: with what the list has no field for. */
export const transactionExport = shape('TransactionExport', 't', {
  ...shown,
  updated_at: instant('When it was last changed.'),
  subscription_id: text('Subscription that it paid for.', { nullable: true }),
})

/** The joins that its columns need, besides `transactions t`. */
export const JOINS = 'left join funnels f on f.project_id = t.project_id and f.id = t.funnel_id'
