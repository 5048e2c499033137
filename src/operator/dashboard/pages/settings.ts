// Settings: limits of custom charges, rate limits, erasure at payment providers, and the rebuild of figures.
import { dateOf } from '../../../lib/days.ts'
import { invalidValue } from '../../../lib/errors.ts'
import { shorten } from '../../../lib/text.ts'
import type { Response } from '../call.ts'
import { id, status, time } from '../format.ts'
import { isChanged, shownField } from '../forms.ts'
import { type Html, html } from '../html.ts'
import { actionForm, facts, hiddenField, section, selectField, textField } from '../parts.ts'
import { noProject, type Page } from '../shell.ts'
import type { Organization, Project } from '../tenants.ts'
import { inCurrency, organizationOf, projectOf, type View } from '../view.ts'

const AT_PROVIDER = {
  off: 'change nothing there',
  on: 'clear the customer’s data, detach cards',
  delete: 'delete the customer',
}
// As many decimals as a currency may have.
const LIMIT = new Intl.NumberFormat('en-US', { maximumFractionDigits: 4 })
const RATE_HINT = 'Requests per second, such as 200, or 200/1000 with a burst of 1,000. Or off, or default.'

export async function settings(view: View): Promise<Page> {
  const { organization, project } = view
  if (!organization) return { title: 'Settings', body: noProject(view) }
  const params = { organization_id: organization.id }
  // They are of the whole organization, which an operator of one project does not reach.
  const rates = view.may('getExchangeRates') && (await view.call('getExchangeRates', { params }))
  return {
    title: 'Settings',
    question: 'What is set for this organization and this project?',
    body: html`
      ${organizationSettings(view, organization)}
      ${rates && exchangeRates(view, rates)}
      ${project && projectSettings(view, project)}`,
  }
}

function organizationSettings(view: View, one: Organization): Html {
  const limits = Object.entries(one.one_off_charge_max_amount)
  const charges = { enabled: one.one_off_charge_enabled ? '1' : '', max: one.one_off_charge_max_amount['*'] ?? '' }
  return section(
    `Organization ${one.name || one.id}`,
    html`${facts({
      ID: id(one.id),
      'Custom charges': one.one_off_charge_enabled ? status('allowed') : status('not allowed'),
      'Largest amounts':
        limits
          .map(
            ([currency, amount]) =>
              `${LIMIT.format(Number(amount))} ${currency === '*' ? 'in any currency' : currency}`,
          )
          .join(', ') || 'no limit',
      'Erasure at payment providers': AT_PROVIDER[one.erase_at_provider],
      'Rate limit per key': one.rate_limit,
    })}
    <div class="row">${actionForm(view, {
      action: view.href('/settings/charges'),
      button: 'Change custom charges',
      explanation: 'Sets whether the billing API may charge saved cards, and the largest amount of a charge.',
      fields: html`${shownField(charges)}${selectField('enabled', 'Custom charges', { '1': 'allowed', '': 'not allowed' }, charges.enabled)}${textField('max', 'Largest amount', { value: charges.max, required: true })}${textField('currency', 'Currency', { hint: 'For example EUR. Leave empty for all currencies without a limit of their own.' })}`,
    })}
    ${actionForm(view, {
      action: view.href('/settings/erasures'),
      button: 'Change erasures',
      explanation: 'Sets what future erasures do at payment providers. What they do there cannot be undone.',
      fields: selectField('erase_at_provider', 'At payment providers', AT_PROVIDER, one.erase_at_provider),
    })}
    ${view.may('setOrganizationRateLimit') && rateForm(view, 'organization', one.rate_limit)}</div>`,
  )
}

function exchangeRates(view: View, { newest_day, source, fetched_at, error }: Response<'getExchangeRates'>): Html {
  return section(
    'Exchange rates',
    facts({
      'Newest day': newest_day === null ? 'none' : dateOf(newest_day),
      'Fetched from': source ?? 'nowhere: they are loaded by hand',
      ...(source !== null && { 'Last fetch': time(fetched_at) }),
      ...(error !== null && { 'Last error': error }),
    }),
    {
      note: html`They give amounts their value in US dollars${view.reporting.currency !== 'USD' && ` and ${inCurrency(view)}`}. <a href="/docs/guides/commands#rates">How to load or fetch them</a>.`,
    },
  )
}

function projectSettings(view: View, one: Project): Html {
  return section(
    `Project ${one.name || one.id}`,
    html`${facts({
      ID: id(one.id),
      'Rate limit per key': one.rate_limit,
      'Payments by write keys': one.write_payments ? status('allowed') : status('not allowed'),
      'Time zone': one.time_zone,
      'Reporting currency': one.reporting_currency,
    })}
    <div class="row">${rateForm(view, 'project', one.rate_limit)}
    ${actionForm(view, {
      action: view.href('/settings/payments'),
      button: 'Change payments by write keys',
      explanation:
        'Sets whether keys of this project that write may also write payments, customers and merchant accounts. They decide whose card is charged.',
      fields: selectField(
        'write_payments',
        'Payments by write keys',
        { on: 'allowed', off: 'not allowed' },
        one.write_payments ? 'on' : 'off',
      ),
    })}
    ${actionForm(view, {
      action: view.href('/settings/reporting'),
      button: 'Change time zone and currency',
      explanation:
        'Days, weeks and months of figures, pages and downloads are those of the time zone; amounts are converted to the currency. All figures of this project are computed again.',
      fields: html`${shownField({ time_zone: one.time_zone, currency: one.reporting_currency })}${textField('time_zone', 'Time zone', { value: one.time_zone, required: true, hint: 'For example Europe/Madrid or UTC' })}${textField('currency', 'Reporting currency', { value: one.reporting_currency, required: true, hint: 'For example EUR' })}`,
    })}
    ${actionForm(view, {
      action: view.href('/settings/figures'),
      button: 'Rebuild all figures',
      explanation:
        'Recomputes all figures of this project from its records. Pages show the old figures until then. Only needed if the doctor says so.',
    })}</div>`,
  )
}

const rateForm = (view: View, owner: 'organization' | 'project', value: string) =>
  actionForm(view, {
    action: view.href('/settings/rates'),
    button: 'Change the rate limit',
    explanation: 'Requests above the limit are refused with status 429.',
    fields: html`${hiddenField('owner', owner)}${textField('rate_limit', 'Rate limit', { value, required: true, hint: RATE_HINT })}`,
  })

export async function saveCharges(view: View, form: URLSearchParams): Promise<string> {
  const max = form.get('max')
  const currency = form.get('currency')?.toUpperCase() || '*'
  // The operation has one text for both, such as EUR=500.
  if (!/^(\*|[A-Z]{3})$/.test(currency)) throw invalid('currency must be a currency such as EUR', currency)
  // A limit can be changed, but not removed: an empty field would be saved as no change.
  if (max !== null && !/^\d+(\.\d+)?$/.test(max)) throw invalid('max must be an amount such as 500', max)
  return save(view, {
    ...(isChanged(form, 'enabled') && { one_off_charge_enabled: form.get('enabled') === '1' }),
    ...(max !== null &&
      (isChanged(form, 'max') || currency !== '*') && { one_off_charge_max_amount: { [currency]: max } }),
  })
}

const invalid = (rule: string, got: string) => invalidValue(`${rule}, got "${shorten(got, 40)}".`)

export const saveErasures = (view: View, form: URLSearchParams): Promise<string> =>
  save(view, { erase_at_provider: form.get('erase_at_provider') ?? '' })

async function save(view: View, body: object): Promise<string> {
  const params = { organization_id: organizationOf(view).id }
  await view.call('setOrganization', { params, body: body as Record<string, unknown> })
  return view.href('/settings', { done: 'saved' })
}

export async function saveRate(view: View, form: URLSearchParams): Promise<string> {
  const body = { rate_limit: form.get('rate_limit') ?? '' }
  if (form.get('owner') === 'project')
    await view.call('setProjectRateLimit', { params: { project_id: projectOf(view).id }, body })
  else await view.call('setOrganizationRateLimit', { params: { organization_id: organizationOf(view).id }, body })
  return view.href('/settings', { done: 'saved' })
}

export async function savePayments(view: View, form: URLSearchParams): Promise<string> {
  const body = { write_payments: form.get('write_payments') === 'on' }
  await view.call('setProjectWritePayments', { params: { project_id: projectOf(view).id }, body })
  return view.href('/settings', { done: 'saved' })
}

export async function saveReporting(view: View, form: URLSearchParams): Promise<string> {
  const body = {
    ...(isChanged(form, 'time_zone') && { time_zone: form.get('time_zone') ?? undefined }),
    ...(isChanged(form, 'currency') && { currency: form.get('currency')?.toUpperCase() }),
  }
  await view.call('setProjectReporting', { params: { project_id: projectOf(view).id }, body })
  return view.href('/settings', { done: 'saved' })
}

export async function rebuild(view: View): Promise<string> {
  await view.call('rebuildFigures', { params: { project_id: projectOf(view).id } })
  return view.href('/settings', { done: 'rebuilt' })
}
