// The discovery document of the OpenID Connect provider, and how this installation authenticates there.
import {
  allowInsecureRequests,
  type ClientAuth,
  ClientSecretPost,
  Configuration,
  discovery,
  enableNonRepudiationChecks,
  getJwksCache,
  type ResponseBodyError,
  type ServerMetadata,
  setJwksCache,
} from 'openid-client'
import { causeOf } from '../../lib/pg/errors.ts'
import type { OidcSettings } from './oidc-settings.ts'

const TIMEOUT_S = 10

/** Reads it at the provider. */
export async function discover(settings: OidcSettings): Promise<Configuration> {
  const { issuer, clientId, clientSecret } = settings
  const execute = isPlain(settings) ? [allowInsecureRequests] : []
  const found = await discovery(new URL(issuer), clientId, clientSecret, undefined, { execute, timeout: TIMEOUT_S })
  return configurationOf(found.serverMetadata(), settings)
}

// The library looks up an unknown key of a signature only if the others are so old, and by then the code of the sign-in has been used.
const PATIENCE_S = 60

/** The same with older keys, so that an unknown one is looked up at once: at most once for a response of the provider. */
export function withOlderKeys(configuration: Configuration, settings: OidcSettings): Configuration {
  const copy = configurationOf(configuration.serverMetadata(), settings)
  const keys = getJwksCache(configuration)
  if (keys) setJwksCache(copy, { ...keys, uat: Math.min(keys.uat, Math.floor(Date.now() / 1000) - PATIENCE_S) })
  return copy
}

const isPlain = ({ issuer }: OidcSettings): boolean => issuer.startsWith('http:')

function configurationOf(metadata: ServerMetadata, settings: OidcSettings): Configuration {
  const { clientId, clientSecret } = settings
  const methods = metadata.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
  const authentication = methods.includes('client_secret_basic')
    ? basic(clientId, clientSecret)
    : ClientSecretPost(clientSecret)
  const configuration = new Configuration(metadata, clientId, clientSecret, authentication)
  configuration.timeout = TIMEOUT_S
  if (isPlain(settings)) allowInsecureRequests(configuration)
  enableNonRepudiationChecks(configuration)
  return configuration
}

/**
 * Whether the provider does not know the client or its secret. Keycloak and Auth0 say so with codes that mean something else without a 401: a
 * grant that the client may not use, and a person who is denied.
 */
export const refusesClient = ({ error, status }: ResponseBodyError): boolean =>
  error === 'invalid_client' || (status === 401 && ['unauthorized_client', 'access_denied'].includes(error))

/** Why no response came: `fetch` itself says only that it failed. */
export const connectionFailure = (error: Error): string =>
  error instanceof TypeError && error.cause ? causeOf(error.cause) : error.message

/**
 * The standard has the id and the secret percent-encoded, and decoded by the provider, which Google for one does not do. So only the characters
 * are that decoding would change: a hyphen or a dot is the same to both.
 */
const basic =
  (clientId: string, clientSecret: string): ClientAuth =>
  (_server, _client, _body, headers) => {
    const pair = [encoded(clientId).replaceAll(':', '%3A'), encoded(clientSecret)].join(':')
    headers.set('authorization', `Basic ${Buffer.from(pair).toString('base64')}`)
  }

const encoded = (text: string) => text.replaceAll(/[%+]|[^!-~]/gu, encodeURIComponent)
