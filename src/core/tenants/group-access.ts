// Which group of the identity provider gives its members which access: the setting OIDC_ROLES.
import { UsageError } from '../../lib/errors.ts'
import { JsonError, readJson } from '../../lib/json/read.ts'
import { type Access, type Reach, ROLES, type Role } from './access.ts'
import { readRefundLimits } from './refund-limits.ts'

/** In the order of the setting: of several groups of a person the first counts. */
export type GroupAccess = readonly (readonly [group: string, access: Access])[]

const EXAMPLE =
  '{"admins": "owner", "helpdesk": {"role": "support", "organizations": ["acme"], "refund_limits": ["50 USD"]}}'

/** Reads the setting. Throws a `UsageError` with its first mistake. */
export function readGroupAccess(name: string, text: string): GroupAccess {
  const groups = parse(name, text)
  if (typeof groups !== 'object' || groups === null || Array.isArray(groups) || Object.keys(groups).length === 0)
    throw new UsageError(`${name} must be groups with their roles as JSON, such as ${EXAMPLE}.`)
  return namesInOrder(text).map((group) => [
    group,
    accessOf(`${name}, group "${group}"`, (groups as Record<string, unknown>)[group]),
  ])
}

function parse(name: string, text: string): unknown {
  try {
    return readJson(text)
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    throw new UsageError(
      `${name} must be groups with their roles as JSON, such as ${EXAMPLE}. Mistake at ${error.message}.`,
    )
  }
}

/** The names of the outermost object. JavaScript moves those that are numbers, as groups of LDAP, to the front of its objects. */
function namesInOrder(text: string): string[] {
  const names: string[] = []
  let depth = 0
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"(?:\s*:)?|[{}[\]]/g)) {
    if (token.endsWith(':') && depth === 1) names.push(JSON.parse(token.slice(0, -1)) as string)
    if (!token.startsWith('"')) depth += '{['.includes(token) ? 1 : -1
  }
  return names
}

function accessOf(where: string, given: unknown): Access {
  const { role, organizations, projects, refund_limits, ...others } = (
    typeof given === 'string' ? { role: given } : (given ?? {})
  ) as Record<string, unknown>
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw new UsageError(`${where}: "${unknown}" is not known.`)
  if (!ROLES.includes(role as Role)) throw new UsageError(`${where}: the role must be one of ${ROLES.join(', ')}.`)
  for (const [field, value] of Object.entries({ organizations, projects, refund_limits }))
    if (value !== undefined && !isTexts(value)) throw new UsageError(`${where}: ${field} must be a list of texts.`)
  if (refund_limits !== undefined && role !== 'support')
    throw new UsageError(`${where}: refund_limits are for the role support.`)
  const reach = { organizations: organizations ?? [], projects: projects ?? [] } as Reach
  if ((organizations ?? projects) !== undefined && reach.organizations.length + reach.projects.length === 0)
    throw new UsageError(`${where}: organizations and projects are empty. Leave both out for all of them.`)
  return {
    role: role as Role,
    reach: (organizations ?? projects) === undefined ? null : reach,
    refundLimits: role === 'support' ? readRefundLimits(where, (refund_limits as string[] | undefined) ?? []) : null,
  }
}

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string')

/**
 * The access of the first group of the setting that the claim has; undefined if it has none. The claim is a text, a number, a list of
 * them, or an object. `ignoreCase` is for e-mail addresses, which providers write as they were typed; of A to Z only, so that no other
 * letter passes for one of them.
 */
export function accessByGroups(groups: GroupAccess, claim: unknown, { ignoreCase = false } = {}): Access | undefined {
  const asCompared = ignoreCase ? lowerCase : (text: string) => text
  const own = new Set(groupsOf(claim).map(asCompared))
  return groups.find(([group]) => own.has(asCompared(group)))?.[1]
}

/**
 * The groups of a claim. ZITADEL sends an object whose names are the roles; the value of each is an object with the domains of the
 * organizations that give it. Keycloak's `resource_access` is an object, too, but its names are clients: the value of each has a list of
 * roles.
 */
function groupsOf(claim: unknown): string[] {
  if (isObject(claim)) return Object.entries(claim).flatMap(([name, given]) => (hasOnlyTexts(given) ? [name] : []))
  return [claim]
    .flat()
    .filter((one) => typeof one === 'string' || typeof one === 'number')
    .map(String)
}

const hasOnlyTexts = (value: unknown) => isObject(value) && isTexts(Object.values(value))

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const lowerCase = (text: string) => text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
