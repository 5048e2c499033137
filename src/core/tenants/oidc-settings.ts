// The settings of signing in with OpenID Connect.
import { UsageError } from '../../lib/errors.ts'
import { hasUnreadFile } from '../../lib/setting-files.ts'
import { type GroupAccess, readGroupAccess } from './group-access.ts'

export interface OidcSettings {
  issuer: string
  clientId: string
  clientSecret: string
  /** The claim with the groups of a person. */
  claim: string
  roles: GroupAccess
  /** Undefined for those that sign-in needs. */
  scope: string | undefined
  /** What the provider should ask people; undefined for what a refresh token needs. */
  prompt: string | undefined
}

/** The values of the settings; undefined for those that are not set. */
export interface OidcGiven {
  issuer: string | undefined
  clientId: string | undefined
  clientSecret: string | undefined
  roles: string | undefined
  claim: string | undefined
  scope: string | undefined
  prompt: string | undefined
}

const REQUIRED = { clientId: 'OIDC_CLIENT_ID', clientSecret: 'OIDC_CLIENT_SECRET', roles: 'OIDC_ROLES' } as const

// Without "none": with it the provider refuses people who are not signed in there yet.
const PROMPTS = ['consent', 'login', 'select_account']

/** Undefined without an issuer. Adds a sentence to `mistakes` for each fault. */
export function readOidc(given: OidcGiven, mistakes: string[]): OidcSettings | undefined {
  const { issuer, clientId = '', clientSecret = '', claim = 'groups', roles, scope, prompt } = given
  const required = Object.entries(REQUIRED) as [keyof typeof REQUIRED, string][]
  if (issuer === undefined) {
    const others = required.filter(([field]) => given[field] !== undefined).map(([, name]) => name)
    if (others.length > 0) mistakes.push(`${others.join(' and ')} without OIDC_ISSUER: nobody can sign in with it.`)
    return undefined
  }
  for (const [field, name] of required)
    if (given[field] === undefined && !hasUnreadFile(name, mistakes)) mistakes.push(`OIDC_ISSUER needs ${name} too.`)
  if (!isIssuer(issuer))
    mistakes.push('OIDC_ISSUER must be the https:// address of the provider, as its discovery document names it.')
  if (scope !== undefined && !scope.split(' ').includes('openid'))
    mistakes.push('OIDC_SCOPE must be scopes separated by spaces, with openid.')
  if (prompt !== undefined && !prompt.split(' ').every((value) => PROMPTS.includes(value)))
    mistakes.push(`OIDC_PROMPT must be one or more of ${PROMPTS.join(', ')}, separated by spaces.`)
  return { issuer, clientId, clientSecret, claim, scope, prompt, roles: rolesOf(roles, mistakes) }
}

/** Without TLS only on this machine: the client secret is sent there. */
function isIssuer(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, hostname, search, hash: fragment } = new URL(text)
  const isSafe =
    protocol === 'https:' || (protocol === 'http:' && ['127.0.0.1', '[::1]', 'localhost'].includes(hostname))
  return isSafe && search + fragment === ''
}

function rolesOf(text: string | undefined, mistakes: string[]): GroupAccess {
  try {
    return text === undefined ? [] : readGroupAccess('OIDC_ROLES', text)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    mistakes.push(error.message)
    return []
  }
}
