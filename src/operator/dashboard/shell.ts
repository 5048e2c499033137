// The frame of every page: navigation, choosers of project and period, search, messages.
import { type Html, html, type Piece } from './html.ts'
import { computing, type PeriodChoices, periodChooser } from './period-chooser.ts'
import { shardLinks } from './shards.ts'
import { type Named, wholeOf } from './tenants.ts'
import { allChoices, choicesAndPositions, hiddenParameters, type View } from './view.ts'

export interface Page extends PeriodChoices {
  title: string
  /** The question that the page answers, below its title. */
  question?: Piece
  body: Html
  /** Whether the page has a period chooser; pages that only show the present state have none. */
  hasPeriod?: boolean
  /** Names the filter of the page. */
  filterBar?: Piece
  /** The first and the last day of a page that chooses them itself, for the name of a CSV. */
  days?: { from: string; to: string }
  /** Links next to the title. */
  actions?: Piece
}

/** Of a page with a period that is neither grouped nor compared. */
export const PLAIN_PERIOD = { hasPeriod: true, isGrouped: false, isCompared: false }

const NAVIGATION: [group: string, pages: [path: string, title: string][]][] = [
  [
    'Business',
    [
      ['/', 'Today'],
      ['/hours', 'Today by hour'],
      ['/acquisition', 'Acquisition'],
      ['/funnels', 'Funnels'],
      ['/experiments', 'Experiments'],
      ['/revenue', 'Revenue'],
      ['/worth', 'Customer worth'],
      ['/subscriptions', 'Subscriptions'],
      ['/movements', 'MRR movements'],
      ['/churn', 'Churn'],
    ],
  ],
  [
    'Money',
    [
      ['/payments', 'Payments'],
      ['/charges', 'Charges'],
      ['/declines', 'Recovered declines'],
      ['/refunds', 'Refunds and disputes'],
      ['/credits', 'Credits'],
      ['/finance', 'Finance'],
      ['/payouts', 'Payouts'],
    ],
  ],
  [
    'People',
    [
      ['/people', 'People'],
      ['/sessions', 'Sessions'],
      ['/erasures', 'Erasures'],
    ],
  ],
  [
    'Operations',
    [
      ['/alerts', 'Alerts'],
      ['/webhooks', 'Webhooks'],
      ['/sync', 'Sync'],
      ['/doctor', 'Doctor'],
      ['/audit', 'Audit log'],
    ],
  ],
  [
    'Settings',
    [
      ['/projects', 'Projects'],
      ['/keys', 'Keys'],
      ['/merchant-accounts', 'Merchant accounts'],
      ['/settings', 'Settings'],
    ],
  ],
]

/** A whole HTML document. `theme` is the one chosen in this browser; undefined: that of the system. */
export function document(title: string, body: Html, theme: string | undefined): string {
  return html`<!doctype html>
<html lang="en"${theme ? html` data-theme="${theme}"` : ''}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="htmx-config" content='{"includeIndicatorStyles":false,"allowEval":false,"historyCacheSize":0,"refreshOnHistoryMiss":true,"selfRequestsOnly":true}'>
<title>${title} · Tundish</title>
<link rel="icon" href="/favicon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/dashboard.css">
<script src="/assets/htmx.js" defer></script>
<script src="/assets/chart.js" defer></script>
<script src="/assets/dashboard.js" defer></script>
</head>
${body}
</html>
`.text
}

export function shell(view: View, page: Page): Html {
  const { title, question, body, hasPeriod = false, actions } = page
  const { session, query, test } = view
  const hasFilterInLine = hasPeriod && view.filters.length === 0
  return html`<body hx-boost="true" hx-sync="this:replace">
<a class="skip" href="#content">Skip to content</a>
<header class="side">
  <a class="brand" href="${view.href('/')}"><img src="/favicon.svg" alt="" width="26" height="26">Tundish</a>
  ${projectChooser(view)}
  <details class="menu"><summary>Menu</summary>${navigation(view)}</details>
  <div class="wide">${navigation(view)}</div>
  <div class="who">
    <p><span class="quiet">Signed in as</span> ${session.name} <span class="badge flat">${session.access.role}</span>${reachOf(view)}</p>
    <form method="post" action="/theme" hx-boost="false"><input type="hidden" name="back" value="${view.href(view.path, choicesAndPositions(view))}">
      <button class="link" name="theme" value="light">Light</button><button class="link" name="theme" value="dark">Dark</button><button class="link" name="theme" value="">System</button></form>
    <p hx-boost="false"><a href="/docs">Reference</a> · <a href="/docs/guides">Guides</a></p>
    <form method="post" action="/sign-out" hx-boost="false"><button class="link">Sign out</button></form>
  </div>
</header>
<div class="page">
  <main id="content" tabindex="-1">
    <div class="heading"><div class="title"><h1>${wrapping(title)}</h1>${question && html`<p class="quiet">${question}</p>`}</div><div class="actions">${actions}</div>${view.mayOpen('/people') && search(view)}</div>
    ${message(query)}
    ${test && hasPeriod ? html`<p class="note">Sandbox and preview data is included. <a href="${view.href(view.path, { ...allChoices(view), test: null })}">Exclude it</a></p>` : ''}
    ${(hasPeriod || view.path === '/') && computing(view)}
    ${hasPeriod && periodChooser(view, page, hasFilterInLine && page.filterBar)}
    ${!hasFilterInLine && page.filterBar}
    ${body}
  </main>
  <footer class="quiet">Times are in UTC${view.reporting.timeZone !== 'UTC' && `, days in ${view.reporting.timeZone}`}.</footer>
</div>
</body>`
}

/** A title that may be an e-mail address, which is broken at the @ and the dots before it rather than within a word. */
const wrapping = (title: string): Piece =>
  title.split(/(?=@)|(?<=[._+-])(?=[^@]*@)/).map((part, n) => [n > 0 && html`<wbr>`, part])

const search = (view: View): Html => html`<form class="search" role="search" action="/people" method="get">
      ${hiddenParameters(view, ['q'])}
      <label class="hidden" for="search">Search</label>
      <input id="search" type="search" name="q" value="${view.query.get('q') ?? ''}" placeholder="Part of an e-mail, or an ID" maxlength="320" autocomplete="off" aria-keyshortcuts="/">
      <button>Search</button>
    </form>`

/** Nothing for an operator who reaches the whole installation. */
const reachOf = ({ session: { access } }: View): Piece =>
  access.reach &&
  html`<br><span class="quiet">Reaches ${[...access.reach.organizations, ...access.reach.projects].join(', ')}</span>`

function navigation(view: View): Html {
  const isHere = (path: string) =>
    path === '/' ? view.path === '/' : view.path === path || view.path.startsWith(`${path}/`)
  const open = NAVIGATION.map(([group, pages]) => [group, pages.filter(([path]) => view.mayOpen(path))] as const)
  return html`${shardLinks(view)}<nav aria-label="Pages">${open.map(
    ([group, pages]) =>
      pages.length > 0 &&
      html`<h2>${group}</h2><ul>${pages.map(
        ([path, title]) =>
          html`<li><a href="${view.href(path)}"${isHere(path) ? html` aria-current="page"` : ''}>${title}</a></li>`,
      )}</ul>`,
  )}</nav>`
}

function projectChooser(view: View): Html {
  const { organizations, hasMoreTenants } = view
  if (organizations.length === 0) return html``
  return html`<form class="project" action="${listPath(view.path)}" method="get">
    ${hiddenParameters(view, ['project'])}
    <label for="project">Project</label>
    <select id="project" name="project" data-submit>${organizations.map((one) => optionsOf(view, one))}</select>
    <button>Show</button>
    ${hasMoreTenants && html`<a href="${view.href('/projects')}">All projects…</a>`}
  </form>`
}

/** The options for one organization: its projects, and "All projects" unless it has only one. */
function optionsOf({ projects, project, organization, hasMoreTenants }: View, one: Named): Html {
  const own = projects.filter(({ organization_id }) => organization_id === one.id)
  const isWhole = !project && organization?.id === one.id
  return html`<optgroup label="${one.name || one.id}">
    ${(own.length !== 1 || isWhole || hasMoreTenants) && html`<option value="${wholeOf(one)}"${isWhole ? html` selected` : ''}>${own.length === 0 && !hasMoreTenants ? 'No projects yet' : 'All projects'}</option>`}
    ${own.map(({ id, name }) => html`<option value="${id}"${id === project?.id ? html` selected` : ''}>${name || id}</option>`)}
  </optgroup>`
}

/** The list that an object's page belongs to: the object is not in another project that is chosen there. */
const listPath = (path: string) => `/${path.split('/')[1] ?? ''}`

// Messages after an action. The URL has only their names, so that a link cannot put text into the page.
const DONE: Record<string, string> = {
  refunded: 'The refund was requested. The timeline shows its outcome.',
  resolved: 'The charge was resolved.',
  sent: 'The event will be delivered again.',
  tested: 'A test event was queued.',
  alerted: 'A digest was queued: below are the messages with their outcome.',
  switched: 'The endpoint was updated.',
  removed: 'The endpoint was removed.',
  'rule-removed': 'The rule was removed.',
  'destination-removed': 'The destination was removed, with its messages.',
  added: 'The endpoint was added.',
  saved: 'The settings were saved.',
  revoked: 'The key was revoked. Requests with it are refused.',
  rebuilt: 'The figures were rebuilt.',
  disconnected: 'The account was disconnected, and its keys were deleted.',
  started: 'The import was started. Reload this page to see its progress.',
  stopped: 'The import was stopped.',
  matched: 'The payout was ticked off.',
  unmatched: 'The line of the bank was removed.',
  closed: 'The month was closed. It no longer changes.',
  granted: 'The credits were granted.',
  adjusted: 'The balance was corrected.',
  'top-up-removed': 'The automatic top-up was removed.',
}

const message = (query: URLSearchParams): Piece =>
  Object.hasOwn(DONE, query.get('done') ?? '') && html`<p class="done" role="status">${DONE[query.get('done')!]}</p>`

const ownProjects = ({ organization, projects }: View) =>
  projects.filter(({ organization_id }) => organization_id === organization?.id)

/** Whether the chosen organization has a project. */
export const hasProjects = (view: View): boolean => ownProjects(view).length > 0

/** Replaces the content of a page that needs a project if none is chosen: says what to do next. */
export function noProject(view: View): Html {
  const { path } = view
  const own = ownProjects(view)
  if (own.length > 0)
    return html`<div class="empty"><h2>Choose a project</h2><p>This page shows one project at a time.</p>
      <p class="chips">${own.map(({ id, name }) => html`<a href="${view.href(path, { project: id })}">${name || id}</a> `)}</p></div>`
  const { reach } = view.session.access
  if (reach && !(view.organization && view.maySend('/projects/new'))) {
    const within = Object.entries(reach).flatMap(([what, ids]) => (ids.length > 0 ? `${what} ${ids.join(', ')}` : []))
    return html`<div class="empty"><h2>No projects here</h2>
      <p>Your access is limited to ${within.join(', ')}, and no project of that is here. Ask the owner of this installation.</p></div>`
  }
  return html`<div class="empty"><h2>No projects yet</h2>
    <p>An organization has projects; a project has funnels, people and subscriptions.</p>
    <p>${
      view.maySend('/projects/new')
        ? html`<a class="button" href="${view.href('/projects')}">Create a project</a>`
        : html`Create one on the command line: <code>tundish org create acme</code>, then <code>tundish project create shop --org acme</code>.`
    }</p></div>`
}
