// Merchant accounts of an organization: the accounts at payment providers that its charges go through.
import { invalidValue } from '../../lib/errors.ts'
import { DECLARED_ONLY } from '../../lib/http/rule-phrases.ts'
import { Type } from '../../lib/shape/schema.ts'
import { boolean, instant, json, shape, text } from '../../lib/shape/shape.ts'
import { hasControlCharacters, isName } from '../../lib/text.ts'
import { lockOrganization } from './exist.ts'
import { list, ofOrganization } from './list.ts'
import { currencyOf } from './names.ts'
import { change, type Input } from './operation.ts'

const merchantAccount = shape('MerchantAccount', 'm', {
  psp: text('Payment provider.', { example: 'simulator' }),
  psp_merchant_id: text('Account at the provider.', { example: 'merchant-1' }),
  region: text('Region.', { nullable: true, example: 'eu' }),
  currencies: json('Currencies that the account offers; all if the list is empty.', {
    schema: Type.Array(Type.String()),
    example: ['EUR', 'USD'],
  }),
  sandbox: boolean('Whether the account is in the provider’s test mode; null if it was never connected.', {
    sql: 'm.is_sandbox',
    nullable: true,
  }),
  key_last4: text('Last four characters of the secret key for the provider; null if the account is not connected.', {
    sql: 'm.credentials_last4',
    nullable: true,
    example: '4f2a',
  }),
  provider_account: text('The provider’s own id of the account; null if it was never connected.', {
    nullable: true,
    example: 'acct_1Abc',
  }),
  connected_at: instant('When its credentials were last set.', { nullable: true }),
  created_at: instant('When it was created.'),
  updated_at: instant('When it was last changed.'),
})

// As in imports.
const LONGEST_LABEL = 256

const putMerchantAccount = change({
  id: 'setMerchantAccount',
  right: 'accounts',
  command: 'merchant-account set',
  method: 'PUT',
  path: '/organizations/:organization_id/merchant-accounts/:psp/:psp_merchant_id',
  tag: 'Tenants',
  summary: 'Create or change a merchant account',
  body: Type.Named('MerchantAccountSettings', {
    region: Type.Optional(Type.OrNull(Type.String({ maxLength: 64 }), 'Region.')),
    currencies: Type.Optional(
      Type.Array(Type.String({ minLength: 3, maxLength: 3, [DECLARED_ONLY]: { pattern: '^[A-Za-z]{3}$' } }), {
        description: 'Currencies that the account offers; all if the list is empty.',
        maxItems: 200,
      }),
    ),
  }),
  response: merchantAccount.schema,
  checkInput({ params, body }) {
    checkLabel('psp', params.psp)
    checkLabel('psp_merchant_id', params.psp_merchant_id)
    if (hasControlCharacters(body.region ?? '')) throw invalidValue('region must not have control characters.')
    for (const code of body.currencies ?? []) currencyOf(code)
  },
  async change(query, { params, body }) {
    const { organization_id, psp, psp_merchant_id } = params
    const offered = body.currencies && [...new Set(body.currencies.map(currencyOf))]
    const key = [organization_id, psp, psp_merchant_id]
    await lockOrganization(query, organization_id)
    const [before] = await query(`${READ_SETTINGS} for no key update`, key)
    const currencies = offered ?? JSON.parse(before?.currencies ?? '[]')
    const region = body.region === undefined ? (before?.region ?? null) : body.region
    await query(SET_ACCOUNT, [...key, region, JSON.stringify(currencies)])
    const [row] = await query(FIND_ACCOUNT, key)
    const result = merchantAccount.readNamed(row!)
    const entry = { action: 'merchant_account.set', target: accountOf(params), after: { region, currencies } }
    return {
      entry: before
        ? { ...entry, before: { region: before.region, currencies: JSON.parse(before.currencies!) } }
        : entry,
      result,
    }
  },
})

/** The account of a path, as the target of an audit entry names it. */
export const accountOf = ({ organization_id, psp, psp_merchant_id }: Input['params']) =>
  `merchant account ${psp} ${psp_merchant_id} of organization ${organization_id}`

const WHERE = 'm.organization_id = $1 and m.psp = $2 and m.psp_merchant_id = $3'
const READ_SETTINGS = `select region, currencies from merchant_accounts m where ${WHERE}`
const FIND_ACCOUNT = `select ${merchantAccount.namedColumns} from merchant_accounts m where ${WHERE}`
const SET_ACCOUNT = `
  insert into merchant_accounts as m (organization_id, psp, psp_merchant_id, region, currencies, created_at, updated_at)
  select $1, $2, $3, $4, $5, at, at from (select db_clock() as at) now
  on conflict (organization_id, psp, psp_merchant_id) do update
  set region = excluded.region, currencies = excluded.currencies,
    updated_at = greatest(excluded.updated_at, m.updated_at + interval '1 microsecond')`

/** Throws a 400 unless the text can name an account: not empty, and without control characters. */
export function checkLabel(field: string, text: string): void {
  if (isName(text, LONGEST_LABEL)) return
  throw invalidValue(`${field} must have 1 to ${LONGEST_LABEL} characters and no control characters.`)
}

export const merchantAccounts = [
  list({
    id: 'listMerchantAccounts',
    right: 'setup',
    command: 'merchant-account list',
    columns: ['psp', 'psp_merchant_id', 'sandbox', 'key_last4', 'region', 'updated_at'],
    path: '/organizations/:organization_id/merchant-accounts',
    tag: 'Tenants',
    summary: 'List merchant accounts',
    shape: merchantAccount,
    from: 'merchant_accounts m',
    at: 'm.created_at',
    // A name may be too long for a cursor.
    key: `md5(m.psp || ' ' || m.psp_merchant_id)`,
    ...ofOrganization('m'),
  }),
  putMerchantAccount,
] as const
