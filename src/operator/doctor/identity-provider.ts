// The doctor's check of the OpenID Connect provider: whether it responds, is the one of OIDC_ISSUER, and knows this installation.
import { ClientError, ResponseBodyError, refreshTokenGrant, WWWAuthenticateChallengeError } from 'openid-client'
import { connectionFailure, discover, refusesClient } from '../../core/tenants/oidc-discovery.ts'
import type { OidcSettings } from '../../core/tenants/oidc-settings.ts'
import { shorten } from '../../lib/text.ts'
import { type Finding, failed, ok, warning } from './finding.ts'

const EFFECT =
  'People cannot sign in with it, and those who have are signed out after a quarter of an hour. Operator keys and links work.'

/** Uses a refresh token that the provider never gave: it says whether it accepts the client secret before it refuses that. */
export async function checkIdentityProvider(settings: OidcSettings): Promise<Finding> {
  const { issuer, clientId } = settings
  const { host } = new URL(issuer)
  const accepted = ok('sign-in', `${host} accepts this installation.`)
  try {
    await refreshTokenGrant(await discover(settings), 'of the doctor')
  } catch (error) {
    // Without a body it asks for the client's authentication.
    const isRefused = error instanceof WWWAuthenticateChallengeError && error.status < 500
    if (isRefused || (error instanceof ResponseBodyError && refusesClient(error))) {
      const message = `${host} does not accept this installation as its client "${clientId}". ${EFFECT}`
      return failed('sign-in', message, 'Correct OIDC_CLIENT_ID and OIDC_CLIENT_SECRET, and restart.')
    }
    if (error instanceof ResponseBodyError && error.error === 'unauthorized_client') {
      const message = `${host} gives this installation no refresh tokens: sessions end with their access tokens, or after five minutes.`
      return warning('sign-in', message, 'Allow the grant refresh_token for the client there.')
    }
    if (error instanceof ResponseBodyError && error.status < 500) return accepted
    if (error instanceof ClientError && error.code === OTHER_ISSUER) {
      const message = `The discovery document at ${issuer} names another issuer. ${EFFECT}`
      return failed('sign-in', message, 'Set OIDC_ISSUER to the "issuer" of that document exactly, and restart.')
    }
    const cause = shorten(connectionFailure(error as Error).replaceAll(/\s+/g, ' '), 100)
    const fix = `Open ${issuer.replace(/\/$/, '')}/.well-known/openid-configuration from this machine.`
    return warning('sign-in', `${host} cannot be used (${cause}). ${EFFECT}`, fix)
  }
  return accepted
}

const OTHER_ISSUER = 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED'
