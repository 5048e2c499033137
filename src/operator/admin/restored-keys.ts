// The operator's confirmation of the keys, endpoints and settings that a restored backup brought back.
import { confirmMarks } from '../../core/tenants/restored.ts'
import { Refusal } from '../../lib/errors.ts'
import { Type } from '../../lib/shape/schema.ts'
import { change } from './operation.ts'

const confirmKeys = change({
  id: 'confirmRestoredKeys',
  right: 'manage',
  command: 'keys confirm',
  method: 'POST',
  path: '/restored-keys/confirm',
  tag: 'Keys',
  summary: 'Confirm the keys, endpoints and settings of a restored backup',
  description:
    'Ends the warning of `tundish doctor`: what was revoked, removed or changed after the backup was made is checked. Nothing else changes.',
  response: Type.Named('RestoredKeysConfirmed', {
    restored_at: Type.Array(Type.String({ format: 'date-time' }), {
      description: 'The restores that are confirmed.',
    }),
  }),
  async change(query) {
    const result = { restored_at: await confirmMarks(query) }
    if (result.restored_at.length === 0) throw new Refusal('There is no restore to confirm.')
    return { entry: { action: 'keys.confirmed', target: 'restored keys', after: result }, result }
  },
})

export const restoredKeys = [confirmKeys] as const
