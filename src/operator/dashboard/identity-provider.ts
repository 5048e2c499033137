// The OpenID Connect provider at which people sign in: the address of its sign-in page, and who came back from there.
import {
  AuthorizationResponseError,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  ClientError,
  type Configuration,
  calculatePKCECodeChallenge,
  fetchUserInfo,
  ResponseBodyError,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
  refreshTokenGrant,
  WWWAuthenticateChallengeError,
} from 'openid-client'
import type { Access } from '../../core/tenants/access.ts'
import { accessByGroups } from '../../core/tenants/group-access.ts'
import { connectionFailure, discover, refusesClient, withOlderKeys } from '../../core/tenants/oidc-discovery.ts'
import type { OidcSettings } from '../../core/tenants/oidc-settings.ts'
import { claimOf, clean, groupsIn, isVerified, nameOf } from './person-claims.ts'

/** What is kept in the browser, sealed, from the way out to the way back. */
export interface Begun {
  state: string
  nonce: string
  verifier: string
}

interface Tokens {
  access: string
  refresh?: string | undefined
}

export interface Person {
  subject: string
  name: string
  access: Access
  tokens: Tokens
}

/**
 * Why a sign-in fails: the provider refuses it, the person has no role, or one only by an unverified address, the provider does not send the
 * claim with the groups, or it cannot be reached.
 */
export interface Refused {
  why: 'refused' | 'no role' | 'no claim' | 'unverified' | 'unreachable'
  detail: string
  /** Whether it is about this installation and says nothing of the person: another client secret or issuer, a signature, a clock. */
  ofInstallation?: boolean
  /** What the provider sent: groups without a role, or the names of the claims in place of the missing one. */
  sent?: string[] | undefined
  /** New tokens, where the refresh token was used before the failure: many providers accept it only once. */
  tokens?: Tokens
}

export interface IdentityProvider {
  begin(redirectUri: string): Promise<{ url: URL; begun: Begun } | Refused>
  /** `address` is the URL that the provider sent the browser to, with its query. */
  finish(address: URL, begun: Begun): Promise<Person | Refused>
  /** Asks again who has these tokens. */
  confirm(subject: string, tokens: Tokens): Promise<Person | Refused>
  /** Whether a confirmation failed so recently that the next one waits. */
  isPaused(): boolean
}

// The provider may change its addresses; an unknown key of a signature is looked up at once.
const DISCOVERED_MS = 60 * 60_000

// While the provider does not respond, pages would wait for it one after another.
const PAUSE_MS = 20_000

export const isRefused = (result: object): result is Refused => 'why' in result

export function openIdentityProvider(settings: OidcSettings, clock: { monotonicMs(): number }): IdentityProvider {
  const { issuer, scope } = settings
  let found: { atMs: number; configuration: Promise<Configuration> } | undefined
  let pausedUntilMs = 0
  const configured = (): Promise<Configuration> => {
    if (found && clock.monotonicMs() - found.atMs < DISCOVERED_MS) return found.configuration
    const configuration = discover(settings)
    found = { atMs: clock.monotonicMs(), configuration }
    configuration.catch(() => {
      found = undefined
    })
    return configuration
  }
  const configuredForTokens = async (): Promise<Configuration> => {
    const configuration = withOlderKeys(await configured(), settings)
    if (found) found.configuration = Promise.resolve(configuration)
    return configuration
  }

  async function personOf(
    configuration: Configuration,
    claims: Record<string, unknown> & { sub: string },
    tokens: Tokens,
  ): Promise<Person | Refused> {
    const hasMore = configuration.serverMetadata().userinfo_endpoint !== undefined
    const all = hasMore ? { ...claims, ...(await fetchUserInfo(configuration, tokens.access, claims.sub)) } : claims
    const claim = claimOf(all, settings.claim)
    const access = accessByGroups(settings.roles, claim, { ignoreCase: settings.claim === 'email' })
    const name = nameOf(all, claims.sub)
    if (settings.claim === 'email' && !isVerified(all)) return { why: 'unverified', detail: name }
    if (claim === undefined || claim === null) return { why: 'no claim', detail: name, sent: Object.keys(all).sort() }
    if (!access) return { why: 'no role', detail: name, sent: settings.claim === 'email' ? undefined : groupsIn(claim) }
    return { subject: claims.sub, name, access, tokens }
  }

  return {
    begin: (redirectUri) =>
      refusals(issuer, async () => {
        const configuration = await configured()
        const begun = { state: randomState(), nonce: randomNonce(), verifier: randomPKCECodeVerifier() }
        const wanted = scope ?? scopesOf(configuration)
        // By the standard no refresh token is given without consent. Many providers give one all the same.
        const prompt = settings.prompt ?? (wanted.split(' ').includes('offline_access') ? 'consent' : undefined)
        const url = buildAuthorizationUrl(configuration, {
          redirect_uri: redirectUri,
          scope: wanted,
          state: begun.state,
          nonce: begun.nonce,
          code_challenge: await calculatePKCECodeChallenge(begun.verifier),
          code_challenge_method: 'S256',
          ...(prompt !== undefined && { prompt }),
        })
        return { url, begun }
      }),
    finish: (address, { state, nonce, verifier }) =>
      refusals(issuer, async () => {
        const configuration = await configuredForTokens()
        const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true }
        const response = await authorizationCodeGrant(configuration, address, checks)
        const tokens = { access: response.access_token, refresh: response.refresh_token }
        return personOf(configuration, response.claims()!, tokens)
      }),
    isPaused: () => clock.monotonicMs() < pausedUntilMs,
    async confirm(subject, tokens) {
      let latest = tokens
      const result = await refusals(issuer, async () => {
        const configuration = await configuredForTokens()
        // Without a refresh token the provider is asked with the access token, which ends with the person's session there.
        if (tokens.refresh === undefined) return personOf(configuration, { sub: subject }, tokens)
        const response = await refreshTokenGrant(configuration, tokens.refresh)
        latest = { access: response.access_token, refresh: response.refresh_token ?? tokens.refresh }
        const claims = response.claims() ?? { sub: subject }
        if (claims.sub !== subject) return { why: 'refused', detail: 'It names another person.' }
        return personOf(configuration, claims, latest)
      })
      const isFailed = isRefused(result) && (result.why === 'unreachable' || result.ofInstallation === true)
      if (isFailed) pausedUntilMs = clock.monotonicMs() + PAUSE_MS
      return isFailed && latest !== tokens ? { ...result, tokens: latest } : result
    },
  }
}

/** `offline_access` asks for a refresh token, where the provider knows it. */
function scopesOf(configuration: Configuration): string {
  const known = configuration.serverMetadata().scopes_supported ?? []
  return ['openid', 'profile', 'email', ...(known.includes('offline_access') ? ['offline_access'] : [])].join(' ')
}

/** What the provider refuses, and what cannot be trusted, is distinguished from a provider that does not respond. */
async function refusals<T>(issuer: string, work: () => Promise<T | Refused>): Promise<T | Refused> {
  try {
    return await work()
  } catch (error) {
    return refusalOf(error, issuer)
  }
}

function refusalOf(error: unknown, issuer: string): Refused {
  if (error instanceof AuthorizationResponseError)
    return {
      why: DOWN.has(error.error) ? 'unreachable' : 'refused',
      detail: responseOf(error, issuer),
    }
  if (error instanceof ResponseBodyError) {
    const isDown = isBusy(error) || DOWN.has(error.error)
    const detail = responseOf(error, issuer)
    return { why: isDown ? 'unreachable' : 'refused', detail, ofInstallation: refusesClient(error) }
  }
  if (error instanceof WWWAuthenticateChallengeError) {
    // The address of the tokens asks for the client's own authentication, that of the person for a bearer's.
    const ofInstallation = !error.cause.some(({ scheme }) => scheme.toLowerCase() === 'bearer')
    const detail = `${issuer} does not accept the ${ofInstallation ? 'client secret' : 'access token'}.`
    return { why: isBusy(error) ? 'unreachable' : 'refused', detail, ofInstallation }
  }
  const unreachable = (failure: Error): Refused => ({
    why: 'unreachable',
    detail: `${issuer}: ${clean(connectionFailure(failure), 300)}`,
  })
  if (isOfLibrary(error))
    return UNREACHABLE.has(error.code)
      ? unreachable(error)
      : { why: 'refused', detail: sentenceOf(error), ofInstallation: true }
  // A connection that failed is a TypeError of fetch.
  if (error instanceof TypeError || error instanceof DOMException) return unreachable(error)
  throw error
}

/** Not all of its errors are a `ClientError`: the one for a discovery document without the address of the sign-in page is not. */
const isOfLibrary = (error: unknown): error is Error & { code: string } =>
  error instanceof ClientError || (error instanceof Error && /^OAUTH_/.test((error as { code?: string }).code ?? ''))

/** The message of the cause, if there is one: most errors themselves say only that a response is invalid. */
const sentenceOf = ({ message, cause }: Error): string =>
  clean((cause instanceof Error && cause.message) || message, 300)

/** What it says, with the sentence in which most providers give the reason: the code of Entra ID is in there alone. */
function responseOf(
  { error, error_description }: AuthorizationResponseError | ResponseBodyError,
  issuer: string,
): string {
  // Some send a list or an object in place of a text.
  const why = typeof error_description === 'string' ? error_description : JSON.stringify(error_description ?? '')
  return `${issuer} answers "${clean(error)}"${/[\p{L}\p{N}]/u.test(why) ? `: ${clean(why, 300)}` : '.'}`
}

/** Whether the provider fails, or limits requests: it says nothing of this one. */
const isBusy = ({ status }: { status: number }) => status >= 500 || status === 429

const DOWN = new Set(['temporarily_unavailable', 'server_error', 'slow_down'])
const UNREACHABLE = new Set([
  'OAUTH_TIMEOUT',
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
  'OAUTH_RESPONSE_IS_NOT_JSON',
  'OAUTH_PARSE_ERROR',
])
