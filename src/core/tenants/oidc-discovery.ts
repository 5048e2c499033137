// The discovery document of the OpenID Connect provider, and how this installation authenticates there.
import {
  allowInsecureRequests,
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  discovery,
  enableNonRepudiationChecks,
} from 'openid-client'
import type { OidcSettings } from './oidc-settings.ts'

const TIMEOUT_S = 10

/** Reads it at the provider. */
export async function discover({ issuer, clientId, clientSecret }: OidcSettings): Promise<Configuration> {
  const isPlain = issuer.startsWith('http:')
  const execute = isPlain ? [allowInsecureRequests] : []
  const found = await discovery(new URL(issuer), clientId, clientSecret, undefined, { execute, timeout: TIMEOUT_S })
  const methods = found.serverMetadata().token_endpoint_auth_methods_supported ?? ['client_secret_basic']
  const authentication = methods.includes('client_secret_basic')
    ? ClientSecretBasic(clientSecret)
    : ClientSecretPost(clientSecret)
  const configuration = new Configuration(found.serverMetadata(), clientId, clientSecret, authentication)
  configuration.timeout = TIMEOUT_S
  if (isPlain) allowInsecureRequests(configuration)
  enableNonRepudiationChecks(configuration)
  return configuration
}
