// What a page is made with: the operator's session, the choices in its address, and the operations it may call.
import { type Input, isReading, type Operation, perform } from '../admin/operation.ts'
import { operations } from '../admin/operations.ts'
import type { App } from '../app.ts'
import type { Actor } from '../audit/audit.ts'
import { ApiError } from '../lib/errors.ts'
import { bodyCheck } from '../lib/http/body.ts'
import { choosePeriod, type Span } from './period.ts'
import type { Session } from './sessions.ts'
import type { Table } from './sheet.ts'

// biome-ignore lint/suspicious/noExplicitAny: an answer is what its operation's schema says.
export type Answer = any

export interface Project {
  id: string
  organization_id: string
  name: string
}

export interface Organization {
  id: string
  name: string
}

export interface View {
  app: App
  session: Session
  actor: Actor
  /** The path without its query. */
  path: string
  query: URLSearchParams
  params: Record<string, string>
  /** All projects, newest first. */
  projects: Project[]
  organizations: Organization[]
  /** The one that is chosen; undefined: a whole organization is chosen, or there is none at all. */
  project: Project | undefined
  /** That of the chosen project, or the one that is chosen as a whole; undefined: there is none at all. */
  organization: Organization | undefined
  span: Span
  /** Whether sandbox and preview data is shown. */
  test: boolean
  mayWrite: boolean
  /** Tables of the page by their id, so that each can be had as CSV. */
  tables: Map<string, Table>
  /** Carries out an operation of the operator's API. */
  call(id: string, input?: Partial<Input>): Promise<Answer>
  /** An address with the choices of this page, changed by `changes`; null drops one. */
  href(path: string, changes?: Record<string, string | null>): string
}

/** Choices that every address keeps. */
const KEPT = ['project', 'period', 'from', 'to', 'by', 'compare', 'test']
/** What stands before the id of an organization that is chosen with all of its projects. */
const ALL = 'all:'

export interface Opened {
  app: App
  session: Session
  actor: Actor
  path: string
  query: URLSearchParams
  params: Record<string, string>
}

export async function openView(opened: Opened): Promise<View> {
  const { app, session, actor, query } = opened
  const call: View['call'] = (id, input = {}) => callOperation(app, actor, session, id, input)
  const [projects, organizations, [now]] = await Promise.all([
    allOf(call, 'listProjects') as Promise<Project[]>,
    allOf(call, 'listOrganizations') as Promise<Organization[]>,
    app.db.query(`select to_char(db_clock() at time zone 'UTC', 'YYYY-MM-DD') as today`),
  ])
  const { project, organization } = choose(projects, organizations, query.get('project'))
  const place = project?.id ?? (organization && ALL + organization.id)
  return {
    ...opened,
    projects,
    organizations,
    project,
    organization,
    span: choosePeriod(query, now!.today!),
    test: query.get('test') === '1',
    mayWrite: session.scope === 'write',
    tables: new Map(),
    call,
    href: (path, changes = {}) =>
      addressOf(query, path, { ...(place !== undefined && { project: place }), ...changes }),
  }
}

/** Of a project, its organization; `all:ID` is an organization as a whole. Without a choice the newest project. */
function choose(projects: Project[], organizations: Organization[], wanted: string | null) {
  const byId = (id: string | undefined) => organizations.find((one) => one.id === id)
  if (wanted?.startsWith(ALL)) {
    const organization = byId(wanted.slice(ALL.length))
    if (!organization)
      throw new ApiError(404, 'object_not_found', `There is no organization "${wanted.slice(ALL.length)}".`)
    return { project: undefined, organization }
  }
  const project = wanted === null ? projects[0] : projects.find(({ id }) => id === wanted)
  if (wanted !== null && !project) throw new ApiError(404, 'object_not_found', `There is no project "${wanted}".`)
  return { project, organization: project ? byId(project.organization_id) : organizations[0] }
}

/** What the address of a choice is called: of a project, or of a whole organization. */
export const wholeOf = ({ id }: Organization) => ALL + id

function addressOf(query: URLSearchParams, path: string, changes: Record<string, string | null>): string {
  const kept = new URLSearchParams()
  for (const name of KEPT) if (query.has(name) && !(name in changes)) kept.set(name, query.get(name)!)
  for (const [name, value] of Object.entries(changes)) if (value !== null) kept.set(name, value)
  const text = kept.toString()
  return text === '' ? path : `${path}?${text}`
}

async function callOperation(app: App, actor: Actor, session: Session, id: string, input: Partial<Input>) {
  const operation = operations.find((one) => one.id === id)
  if (!operation) throw new Error(`Bug: there is no operation ${id}.`)
  if (!mayCall(operation, session)) throw new ApiError(403, 'key_is_read_only', 'This operator key may only read.')
  const whole: Input = { params: {}, query: {}, body: {}, ...input }
  checkInput(operation, whole)
  const answer = await perform(operation, app, actor, whole)
  return typeof answer === 'string' ? JSON.parse(answer) : answer
}

const checks = new Map<string, (value: unknown) => void>()

/** As the API does before it calls an operation: what a form sends may be anything. */
function checkInput(operation: Operation, { params, query, body }: Input): void {
  const schema = isReading(operation) ? operation.query : operation.body
  const check = checks.get(operation.id) ?? bodyCheck(schema ?? {})
  checks.set(operation.id, check)
  check(isReading(operation) ? query : body)
  if (JSON.stringify([params, query, body]).includes('\\u0000'))
    throw new ApiError(400, 'invalid_value', 'A text must not contain the character U+0000.')
}

const mayCall = (operation: Operation, { scope }: Session) => isReading(operation) || scope === 'write'

// A chooser with more entries than this is of no use.
const MOST = 1000

/** All items of a list, at most a thousand. */
export async function allOf(call: View['call'], id: string, input: Partial<Input> = {}): Promise<Answer[]> {
  const items: Answer[] = []
  let cursor: string | undefined
  do {
    const query = { ...input.query, limit: 100, ...(cursor !== undefined && { cursor }) }
    const { data, pagination } = await call(id, { ...input, query })
    items.push(...data)
    cursor = pagination.next_cursor
  } while (cursor !== undefined && items.length < MOST)
  return items
}

/** The chosen project; a page that needs one is not shown without. */
export function projectOf({ project }: View): Project {
  if (!project) throw new ApiError(404, 'object_not_found', 'Choose a project first.')
  return project
}

/** The chosen organization, or that of the chosen project. */
export function organizationOf({ organization }: View): Organization {
  if (!organization) throw new ApiError(404, 'object_not_found', 'There is no organization yet.')
  return organization
}

/** A path whose parts may hold any character: `pathOf('people', id)`. */
export const pathOf = (...parts: string[]) => `/${parts.map(encodeURIComponent).join('/')}`
