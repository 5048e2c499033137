// What a page is made with: the operator's session, the choices in its address, and the operations it may call.
import { type Input, isReading, type Operation, perform } from '../admin/operation.ts'
import { operations } from '../admin/operations.ts'
import type { App } from '../app.ts'
import type { Actor } from '../audit/audit.ts'
import { ApiError } from '../lib/errors.ts'
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
  /** The one that is chosen; undefined: there is none at all. */
  project: Project | undefined
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
const KEPT = ['project', 'period', 'from', 'to', 'compare', 'test']

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
  const projects = (await allOf(call, 'listProjects')) as Project[]
  const wanted = query.get('project')
  const project = projects.find(({ id }) => id === wanted) ?? (wanted === null ? projects[0] : undefined)
  if (wanted !== null && !project) throw new ApiError(404, 'object_not_found', `There is no project "${wanted}".`)
  const [now] = await app.db.query(`select to_char(db_clock() at time zone 'UTC', 'YYYY-MM-DD') as today`)
  return {
    ...opened,
    projects,
    project,
    span: choosePeriod(query, now!.today!),
    test: query.get('test') === '1',
    mayWrite: session.scope === 'write',
    tables: new Map(),
    call,
    href: (path, changes = {}) => addressOf(query, path, changes),
  }
}

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
  const answer = await perform(operation, app, actor, { params: {}, query: {}, body: {}, ...input })
  return typeof answer === 'string' ? JSON.parse(answer) : answer
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
  if (!project) throw new ApiError(404, 'object_not_found', 'There is no project yet.')
  return project
}

/** A path whose parts may hold any character: `pathOf('people', id)`. */
export const pathOf = (...parts: string[]) => `/${parts.map(encodeURIComponent).join('/')}`
