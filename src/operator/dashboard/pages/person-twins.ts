// The other profiles of a person, and the form that merges two profiles.
import { invalidValue } from '../../../lib/errors.ts'
import type { Response } from '../call.ts'
import { id } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { actionForm, hiddenField, section, textField } from '../parts.ts'
import { pathOf, projectOf, type View } from '../view.ts'

/** Profiles that are probably the same person. */
export function twinsOf(view: View, twins: Response<'getPerson'>['twins']): Piece {
  if (twins.length === 0) return ''
  const links = twins.map(
    ({ id: other, reason, merge_from, merge_into }) =>
      html`<li>${id(other, view.href(pathOf('people', other)))} <span class="quiet">${REASONS[reason]}</span>
        ${mergeForm(view, merge_from, merge_into)}</li>`,
  )
  return section('Probably the same person', html`<ul>${links}</ul>`)
}

const mergeForm = (view: View, from: string, into: string): Piece =>
  actionForm(view, {
    action: view.href(pathOf('people', from, 'merge')),
    button: 'Merge',
    danger: true,
    explanation: html`Sessions, subscriptions, transactions and billing customers of ${id(from)} move to ${id(into)}. ${id(from)} loses its personal data, and its ID stands for ${id(into)} from then on. This cannot be undone. Type <code>${from}</code> to confirm.`,
    fields: html`${hiddenField('into', into)}${textField('confirm', 'Profile ID', { required: true })}`,
  })

export async function mergePerson(view: View, form: URLSearchParams): Promise<string> {
  const { profile_id } = view.params as { profile_id: string }
  if (form.get('confirm') !== profile_id)
    throw invalidValue('To confirm, type the profile ID exactly. Nothing was merged.')
  const into_id = form.get('into') ?? ''
  await view.call('mergeProfiles', { params: { project_id: projectOf(view).id, profile_id, into_id } })
  return view.href(pathOf('people', into_id))
}

const REASONS: Record<string, string> = { email: 'has the same e-mail address', customer: 'has the same customer' }
