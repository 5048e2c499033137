// The input of a page: the operator's session, the query parameters, and the operations it may call.
import type { App } from '../../app.ts'
import type { Actor } from '../../core/audit/audit.ts'
import { type Lagging, laggingFigures } from '../../data/figures/as-of.ts'
import { type ReportingNow, reportingNow } from '../../data/figures/settings.ts'
import { addDays } from '../../lib/days.ts'
import { ApiError } from '../../lib/errors.ts'
import type { Responses } from '../admin/operations.ts'
import { type Call, openCall } from './call.ts'
import { chosenFilters, FILTERED_BY, type PageFilter } from './dimensions.ts'
import { html, type Piece } from './html.ts'
import { mayCall, mayOpen, maySend } from './needs.ts'
import { choosePeriod, type Span } from './period.ts'
import type { RefusedForm } from './refused-form.ts'
import type { Session } from './sessions.ts'
import type { Table } from './sheet.ts'
import { findTenants, type Organization, type Project, type Tenants, wholeOf } from './tenants.ts'

/** What a page is requested with. */
interface PageRequest {
  app: App
  session: Session
  actor: Actor
  /** The `Host` header: the name under which the browser reached the dashboard. */
  host: string
  /** The path without its query. */
  path: string
  query: URLSearchParams
  params: Record<string, string>
  /** The project that was shown last in this browser. */
  lastProject: string | undefined
  /** The form for which the page is made, if one on it was refused. */
  refused: RefusedForm | undefined
}

export interface View extends PageRequest, Tenants {
  /** The time zone of the days of the page, and the currency of its figures. */
  reporting: ReportingNow
  /** Set while the figures of the page lag behind by minutes. */
  lagging: Lagging | undefined
  span: Span
  /** The time of the request by the database's clock, which stamps what the page shows; that of this machine may be wrong. */
  nowMs: number
  /** Whether sandbox and preview data is included. */
  test: boolean
  /** Whether the operator may call the operation for the chosen organization and project. */
  may(operation: keyof Responses): boolean
  /** Whether the operator may open the page with this path; the links to others are left out. */
  mayOpen(path: string): boolean
  /** Whether the operator may send the form with this path. */
  maySend(path: string): boolean
  /** The tables of the page by their id, for CSV. */
  tables: Map<string, Table>
  /** Only the figures of one source, campaign, country …, or of several of these. */
  filters: readonly PageFilter[]
  /** Whether the page shows what can be filtered, also by a form above it, and why some of its figures cannot be. */
  filtered: { applied: boolean; byForm: boolean; refused: Set<string> }
  /** The lists that are longer than their download, with its number of rows. */
  cuts: Map<string, number>
  call: Call
  /** The URL of a page with the shared query parameters of this one, changed by `changes`; null removes one. */
  href(path: string, changes?: Record<string, string | null>): string
}

/** Query parameters that all links keep. */
const SHARED = ['project', 'period', 'from', 'to', 'by', 'compare', 'test', ...FILTERED_BY]

export async function openView(request: PageRequest): Promise<View> {
  const { app, session, actor, query } = request
  const call = openCall(app, actor, session)
  const tenants = await findTenants(app.db, call, { chosen: query.get('project'), last: request.lastProject })
  const { project, organization } = tenants
  const shown = shownProjects(tenants).map(({ id }) => id)
  const [{ today, nowMs, ...reporting }, lagging] = await Promise.all([
    reportingNow(app.db, shown),
    laggingFigures(app.db, shown),
  ])
  const who = { access: session.access, organizationId: organization?.id }
  const place = project?.id ?? (organization && wholeOf(organization))
  return {
    ...request,
    ...tenants,
    reporting,
    lagging,
    span: choosePeriod(query, today),
    nowMs,
    test: query.get('test') === '1',
    may: (operation) => mayCall(who, operation),
    mayOpen: (path) => mayOpen(who, path),
    maySend: (path) => maySend(who, path),
    tables: new Map(),
    cuts: new Map(),
    filters: chosenFilters(query),
    filtered: { applied: false, byForm: false, refused: new Set() },
    call,
    href: (path, changes = {}) =>
      addressOf(query, path, { ...(place !== undefined && { project: place }), ...changes }),
  }
}

function addressOf(query: URLSearchParams, path: string, changes: Record<string, string | null>): string {
  const kept = new URLSearchParams()
  for (const name of SHARED) if (query.has(name) && !(name in changes)) kept.set(name, query.get(name)!)
  for (const [name, value] of Object.entries(changes)) if (value !== null) kept.set(name, value)
  const text = kept.toString()
  return text === '' ? path : `${path}?${text}`
}

/** The chosen project, or all of the chosen organization. */
export const shownProjects = ({ project, projects, organization }: Tenants): Project[] =>
  project ? [project] : projects.filter(({ organization_id }) => organization_id === organization?.id)

/** The name of a project, or its id if it has none. */
export const nameOfProject = ({ projects }: Tenants, id: string): string =>
  projects.find((one) => one.id === id)?.name || id

/** The first and the last day of the period of the page. */
export const daysOf = ({ span: { from, to } }: View) => ({ from, to: addDays(to, -1) })

/** The currency of amounts on the page, in words: `in US dollars`, `in EUR`. */
export const inCurrency = ({ reporting: { currency } }: View): string =>
  currency === 'USD' ? 'in US dollars' : `in ${currency}`

/** All query parameters, including those that only this page has. */
const everything = ({ query }: View): [string, string][] =>
  [...query].filter(([name]) => name !== 'done' && name !== 'csv')

/** Query parameters with the position in a list begin with this word. */
const POSITION = /^cursor(_|$)/

/** What was chosen on the page, for links that change it: its lists begin anew, because a position belongs to what was chosen. */
export const allChoices = (view: View): Record<string, string> =>
  Object.fromEntries(everything(view).filter(([name]) => !POSITION.test(name)))

/** What was chosen on the page, and the positions in its lists. */
export const choicesAndPositions = (view: View): Record<string, string> => Object.fromEntries(everything(view))

/** The query parameters of the page as hidden fields of a form, except those that the form has fields for. */
export function hiddenParameters(view: View, own: string[], changes: Record<string, string | null> = {}): Piece {
  const url = new URL(view.href('/', changes), 'http://x')
  return [...url.searchParams]
    .filter(([name]) => !own.includes(name))
    .map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)
}

/** The chosen project. Throws a 404 if there is none. */
export function projectOf({ project }: View): Project {
  if (!project) throw new ApiError(404, 'object_not_found', 'Choose a project first.')
  return project
}

/** The chosen organization, or that of the chosen project. Throws a 404 if there is none. */
export function organizationOf({ organization }: View): Organization {
  if (!organization) throw new ApiError(404, 'object_not_found', 'There is no organization yet.')
  return organization
}

/** A path from parts, which may contain any character: `pathOf('people', id)`. */
export const pathOf = (...parts: string[]) => `/${parts.map(encodeURIComponent).join('/')}`
