// An OpenID Connect provider on loopback, with people who can be removed, and faults in what it issues.
import { createSign, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { freePort } from '../../support/cli.ts'

interface Account {
  name: string
  groups?: string[]
  email?: string
  email_verified?: boolean
}

type Claims = Record<string, unknown>

export const CLIENT = { OIDC_CLIENT_ID: 'tundish', OIDC_CLIENT_SECRET: 'the secret: of + the cli%65nt' }

interface State {
  /** Changes the claims of ID tokens. */
  fault?: ((claims: Claims) => Claims) | undefined
  /** Signs ID tokens, in place of the provider's own key. */
  key?: KeyObject | undefined
  /** Names that key in ID tokens. */
  kid?: string | undefined
  /** Issues ID tokens with the algorithm "none". */
  unsigned?: boolean | undefined
  /** Gives no refresh tokens. */
  withoutRefresh?: boolean | undefined
  /** How often refresh tokens were used. */
  refreshes: number
  /** Takes the address that a browser would be sent back to: it is not sent there. */
  caught?: ((address: string) => void) | undefined
  /** Returns whether it has taken the request over: to respond with something else, or never. */
  takenOver?: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined
}

/** Opens the port first: the server that people sign in to has to know the issuer, and the issuer its address. */
export async function openProvider() {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const accounts = new Map<string, Account>()
  const state: State = { refreshes: 0 }
  let handle: (...given: unknown[]) => void = () => {}
  const server: Server = createServer((request, response) => {
    if (!state.takenOver?.(request, response)) handle(request, response)
  })
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${port}`

  async function serve(redirectUris: string[]): Promise<void> {
    // The package has no types.
    const { default: Provider } = await import('oidc-provider' as string)
    const provider = new Provider(issuer, {
      clients: [
        {
          client_id: CLIENT.OIDC_CLIENT_ID,
          client_secret: CLIENT.OIDC_CLIENT_SECRET,
          redirect_uris: redirectUris,
          grant_types: ['authorization_code', 'refresh_token'],
          response_types: ['code'],
        },
      ],
      jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: 'test', alg: 'RS256', use: 'sig' }] },
      cookies: { keys: ['a key of the test'] },
      claims: { openid: ['sub'], profile: ['name', 'groups'], email: ['email', 'email_verified'] },
      pkce: { required: () => true },
      rotateRefreshToken: true,
      findAccount: (_context: unknown, id: string) =>
        accounts.has(id) ? { accountId: id, claims: async () => ({ sub: id, ...accounts.get(id) }) } : undefined,
    })
    // biome-ignore lint/suspicious/noExplicitAny: the context of koa.
    provider.use(async (context: any, next: () => Promise<void>) => {
      await next()
      const back = String(context.response.get('location') ?? '')
      if (state.caught && redirectUris.some((uri) => back.startsWith(uri))) {
        state.caught(back)
        context.remove('location')
        context.status = 200
        context.body = 'caught'
      }
      if (context.path !== '/token' || !context.body?.id_token) return
      if (context.oidc?.params?.grant_type === 'refresh_token') state.refreshes += 1
      if (state.withoutRefresh) delete context.body.refresh_token
      if (state.fault || state.key || state.unsigned)
        context.body.id_token = resign(
          context.body.id_token,
          state.fault ?? ((claims) => claims),
          state.unsigned ? undefined : (state.key ?? privateKey),
          state.kid,
        )
    })
    handle = provider.callback()
  }

  return {
    issuer,
    accounts,
    state,
    serve,
    /** Refuses connections until `start`. */
    async pause() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
    start: () => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve)),
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Without a key the token says that it has no signature. */
function resign(token: string, change: (claims: Claims) => Claims, key: KeyObject | undefined, kid?: string): string {
  const [head, payload] = token.split('.') as [string, string]
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const claims = part(change(JSON.parse(Buffer.from(payload, 'base64url').toString())))
  if (!key) return `${part({ alg: 'none' })}.${claims}.`
  const named = { ...JSON.parse(Buffer.from(head, 'base64url').toString()), ...(kid && { kid }) }
  const signed = `${part(named)}.${claims}`
  return `${signed}.${createSign('RSA-SHA256').update(signed).sign(key, 'base64url')}`
}
