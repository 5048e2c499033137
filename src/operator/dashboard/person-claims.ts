// What the identity provider says of a person: the claims of the ID token and the user info.
import { shorten } from '../../lib/text.ts'

/**
 * The claim by its name, or by a path: `resource_access.tundish.roles`. Names may have dots too: Auth0 has addresses for names, and a client
 * of Keycloak is often named after its host.
 */
export function claimOf(claims: unknown, name: string): unknown {
  if (typeof claims !== 'object' || claims === null) return undefined
  const own = claims as Record<string, unknown>
  if (Object.hasOwn(own, name)) return own[name]
  for (const { index } of name.matchAll(/\./g)) {
    const outer = name.slice(0, index)
    const found = Object.hasOwn(own, outer) ? claimOf(own[outer], name.slice(index + 1)) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

/** The groups for the log, as they were sent: they may be paths, ids or objects. */
export const groupsIn = (claim: unknown): string[] =>
  [claim]
    .flat()
    .slice(0, 50)
    .map((one) => clean(typeof one === 'string' ? one : JSON.stringify(one)))

/** Whether the address is the person's own: at many providers people enter whichever they like. */
export const isVerified = ({ email, email_verified }: Record<string, unknown>): boolean =>
  // Amazon Cognito sends a text.
  email === undefined || email_verified === true || email_verified === 'true'

export function nameOf(claims: Record<string, unknown>, subject: string): string {
  const given = [claims.name, claims.preferred_username, claims.email].find((one) => typeof one === 'string' && one)
  return clean((given as string | undefined) ?? subject)
}

/** A text of the provider that is shown and logged: one line, of a limited length. */
export const clean = (text: string, length = 100): string =>
  shorten(text.replaceAll(/[\p{C}\s]+/gu, ' ').trim(), length)
