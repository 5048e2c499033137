// A transaction as the data API answers it, and as events tell of it.
import { boolean, instant, integer, object, shape, text } from '../lib/shape/shape.ts'

export const transaction = shape('Transaction', 't', {
  id: text('Identifier.', { example: 'trn_01JZ8Q6V9M3T0R5K7W2X4Y6Z8A' }),
  created_at: instant('When it was made.'),
  session_id: text('Session it was made in.', { nullable: true }),
  profile_id: text('Whose it is.', { example: 'pro_01JZ8Q6V9M3T0R5K7W2X4Y6Z8A' }),
  funnel_id: text('Funnel it was made through.', { nullable: true }),
  funnel: object(
    'The funnel.',
    {
      id: text('Identifier of the funnel.', { sql: 'f.id' }),
      title: text('Title of the funnel.', { sql: 'f.title' }),
      alias: text('Short name of the funnel.', { sql: 'f.alias', nullable: true }),
      type: text('Kind of funnel.', { sql: 'f.type', example: 'default' }),
    },
    { nullable: true },
  ),
  funnel_version: integer('Version of the funnel.', { nullable: true }),
  currency: text('ISO 4217 code.', { example: 'USD' }),
  price: integer('Amount in the minor unit of the currency: 1999 with USD is $19.99.', { example: 1999 }),
  price_usd: integer('Amount in US cents.', { nullable: true, example: 1999 }),
  sandbox: boolean('Whether it was made with test money.'),
  funnel_locale: text('Language of the funnel.', { nullable: true, example: 'en' }),
  experiment_id: text('Experiment the session took part in.', { nullable: true }),
})

/** What its columns need beside `transactions t`. */
export const JOINS = 'left join funnels f on f.project_id = t.project_id and f.id = t.funnel_id'
