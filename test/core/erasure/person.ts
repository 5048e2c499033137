// A person with everything that an erasure removes, marked so that every remaining trace can be found.
import { fold } from '../../../src/lib/text.ts'
import type { Columns, Rows } from '../../support/data.ts'

export const MARK = 'Zyx@Marker.example'

/** The columns with personal data, by table. */
export const PERSONAL: Record<string, Columns> = {
  profiles: { email: MARK, email_folded: fold(MARK), phone: MARK, password_hash: MARK, integrations: { [MARK]: MARK } },
  sessions: {
    ...{ ip: MARK, user_agent: MARK, postal_code: MARK, tracking_cookies: { a: MARK }, query_params: { [MARK]: 1 } },
    origin: `https://${MARK}@shop.example:8443/${MARK}?q=${MARK}#${MARK}`,
  },
  replies: { value: [MARK] },
  customers: { email: MARK, email_folded: fold(MARK) },
  orders: { client_metadata: { note: MARK } },
  refunds: { reason: MARK, comment: MARK },
  credit_entries: { reason: MARK, metadata: { note: MARK } },
  events: { data: { client_metadata: { note: MARK } } },
  webhook_attempts: { answer: MARK },
}

/** A person with one of everything. */
export const person = (id: string): Rows => {
  const session = { id: `session-of-${id}`, profile_id: id, city: 'Berlin', ...PERSONAL.sessions }
  return {
    profiles: [{ id, country: 'DE', ...PERSONAL.profiles }],
    sessions: [session],
    replies: [{ session_id: session.id, ...PERSONAL.replies }],
    subscriptions: [{ id: `subscription-of-${id}`, profile_id: id, session_id: session.id }],
    transactions: [{ id: `transaction-of-${id}`, profile_id: id }],
  }
}
