// The filter by reason, into which people type a code, or its name as pages show it.
import { chosenValue } from './dimensions.ts'
import { nameOfReason } from './format.ts'
import { figures } from './numbers.ts'
import type { View } from './view.ts'

/** The filter for an operation; `metric` is what the page counts by reason. A text that is no name is left as it is. */
export async function chosenReason(view: View, metric: string): Promise<{ reason?: string }> {
  const typed = chosenValue(view.query, 'reason')
  if (typed === undefined) return {}
  // A name begins with a capital, and most have blanks.
  if (!/[A-Z\s]/.test(typed)) return { reason: typed }
  const codes = (await figures(view, metric, { by: 'reason' })).map(({ key }) => key ?? '')
  const isNamed = (code: string) => nameOfReason(code).toLowerCase() === typed.trim().toLowerCase()
  return { reason: codes.includes(typed) ? typed : (codes.find(isNamed) ?? typed) }
}
