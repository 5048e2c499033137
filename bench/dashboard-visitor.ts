// A visitor of the dashboard: signs in with an operator key, and reads whole pages.
import { createOperator } from '../src/core/tenants/operator-keys.ts'
import type { Rig } from './rig.ts'

export interface Visitor {
  adminUrl: string
  cookie: string
}

export async function signIn({ app }: Rig, adminUrl: string): Promise<Visitor> {
  const { key } = await app.db.tx((query) => createOperator(query, { name: 'bench', scope: 'write' }))
  const response = await fetch(`${adminUrl}/sign-in`, {
    method: 'POST',
    redirect: 'manual',
    headers: { origin: adminUrl, 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ operator_key: key }),
  })
  return { adminUrl, cookie: response.headers.get('set-cookie')!.split(';')[0]! }
}

/** Returns the milliseconds until the whole page has arrived. */
export async function visit({ adminUrl, cookie }: Visitor, path: string): Promise<number> {
  const begunMs = performance.now()
  const response = await fetch(adminUrl + path, { headers: { cookie } })
  await response.text()
  if (response.status !== 200) throw new Error(`${path} has the status ${response.status}.`)
  return performance.now() - begunMs
}
