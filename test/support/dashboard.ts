// The dashboard as a browser without scripts sees it: cookies, forms, pages.
import { createOperator, type Scope } from '../../src/core/tenants/operator-keys.ts'
import { startTestServer, type TestServer } from './server.ts'

export type Visit = { status: number; headers: Headers; text: string }

/** A server with a project, and functions that sign in. */
export async function startDashboard(env: Record<string, string> = {}) {
  const server = await startTestServer(env, { worker: false })
  const project = await server.project()
  return { server, project, ...dashboardOf(server), stop: server.stop }
}

/** The dashboard of a server; `operator` makes a key to sign in with. */
export function dashboardOf(server: TestServer) {
  const origin = server.adminUrl
  const operator = (scope: Scope) => server.db.tx((query) => createOperator(query, { name: `test ${scope}`, scope }))
  const visitor = visitorOf(origin)
  /** Signs in with a new key and returns the cookie. */
  const signInAs = async (scope: Scope) => visitor.signIn((await operator(scope)).key)
  return { origin, operator, signInAs, ...visitor }
}

/** Visits the dashboard of a server. */
export function visitorOf(origin: string) {
  /** Sends a request as a browser does; `cookie` is that of a sign-in. */
  async function visit(
    path: string,
    given: { cookie?: string; form?: Record<string, string>; headers?: Record<string, string> } = {},
  ): Promise<Visit> {
    const { cookie, form, headers } = given
    const response = await fetch(origin + path, {
      redirect: 'manual',
      method: form ? 'POST' : 'GET',
      headers: {
        ...(cookie && { cookie }),
        ...(form && { origin, 'sec-fetch-site': 'same-origin', 'content-type': 'application/x-www-form-urlencoded' }),
        ...headers,
      },
      ...(form && { body: new URLSearchParams(form).toString() }),
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }

  /** Signs in with a key and returns the cookie. */
  async function signIn(key: string): Promise<string> {
    const { status, headers } = await visit('/sign-in', { form: { operator_key: key } })
    if (status !== 303) throw new Error(`Signing in has the status ${status}.`)
    return headers.get('set-cookie')!.split(';')[0]!
  }
  return { visit, signIn }
}
