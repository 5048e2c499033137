// Funnels: how many sessions reach each step, over all funnels and in one.
import { ApiError } from '../../../lib/errors.ts'
import { filterTo, howToFill } from '../filter.ts'
import { bar, country, language, money, percent, words } from '../format.ts'
import { type Html, html, type Piece } from '../html.ts'
import { type Lacking, lackingOf } from '../lacking.ts'
import {
  type Figure,
  figures,
  inEarlier,
  mostFirst,
  namesOf,
  roundMoney,
  type Series,
  seriesTable,
  total,
  valueCell,
} from '../numbers.ts'
import { rowsBehind, section, steps, tableSection, tile, tiles, withoutDollars } from '../parts.ts'
import { type Cell, type Column, cell, named, numbers, sums, type Table } from '../sheet.ts'
import { hasProjects, noProject, type Page } from '../shell.ts'
import { chart, csvLink, table } from '../table.ts'
import { pathOf, type View } from '../view.ts'

const STEPS = 'sessions,replied,emails,subscribed,paid'
const ALL = `${STEPS},reply_rate,email_rate,subscription_rate,conversion_rate`

export async function funnels(view: View): Promise<Page> {
  if (!view.organization || !hasProjects(view)) return { title: 'Funnels', body: noProject(view) }
  const [names, sum, lines, each, { revenue: lacks }] = await Promise.all([
    namesOf(view),
    total(view, `${ALL},revenue,revenue_per_session,without_usd`),
    figures(view, 'sessions,paid,conversion_rate', { by: view.span.by, compare: true }),
    figures(view, `${ALL},revenue,revenue_per_session`, { by: 'funnel' }),
    lackingOf(view, 'revenue'),
  ])
  const rows = mostFirst(each, 'sessions').filter(({ values }) => values.sessions)
  const content: Table = {
    caption: 'By funnel',
    columns: [
      { label: 'Funnel' },
      ...countColumns,
      ...sums('Revenue'),
      { label: 'Per session', number: true, ratio: ['Revenue', 'Sessions'] },
    ],
    rows: rows.map((figure) => [
      figure.key === ''
        ? 'No funnel'
        : named(
            html`<a href="${view.href(pathOf('funnels', figure.key!))}">${names.funnels[figure.key!] ?? figure.key}</a>`,
            figure.key!,
          ),
      ...countCells(figure),
      valueCell('usd', figure.values.revenue ?? 0),
      valueCell('usd', figure.values.revenue_per_session ?? 0),
    ]),
  }
  const rest = roundMoney((sum.values.revenue ?? 0) - rows.reduce((all, { values }) => all + (values.revenue ?? 0), 0))
  const left =
    rest !== 0 &&
    html` Not in the table: ${money(rest, view.reporting.currency)} of revenue without a session in a funnel in this period.`
  const empty = html`<h3>No sessions in this period</h3>${howToFill(view, html`Load sessions with <a href="/docs/guides/import">an import</a>`)}`
  return {
    title: 'Funnels',
    hasPeriod: true,
    question: 'How many visitors become customers, and in which funnel?',
    body: html`${tilesOf(view, sum, lacks)}
      ${conversionChart(view, lines, sum)}
      ${(sum.values.sessions ?? 0) > 0 && section('From session to payment', stepsOf(sum), { note: 'Sessions that began in this period. Their later steps are counted whenever they happened.' })}
      ${tableSection(view, 'funnels', content, { empty, note: rows.length > 0 && html`${FEW}${left}` })}`,
  }
}

const stepsOf = ({ values }: Figure) =>
  steps([
    { label: 'Sessions', count: values.sessions ?? 0 },
    { label: 'Replied', count: values.replied ?? 0 },
    { label: 'E-mail', count: values.emails ?? 0 },
    { label: 'Subscribed', count: values.subscribed ?? 0 },
    { label: 'Paid', count: values.paid ?? 0 },
  ])

const countColumns: Column[] = [
  { label: 'Conversion', number: true, ratio: ['Paid', 'Sessions'] },
  ...sums('Sessions', 'Replied'),
  { label: 'Reply rate', number: true, ratio: ['Replied', 'Sessions'] },
  ...sums('E-mail'),
  { label: 'E-mail rate', number: true, ratio: ['E-mail', 'Sessions'] },
  ...sums('Subscribed'),
  { label: 'Subscription rate', number: true, ratio: ['Subscribed', 'Sessions'] },
  ...sums('Paid'),
]

// A share of fewer sessions says little: one more or less moves it by points.
export const FEW_SESSIONS = 30

export const conversionCell = (sessions: number, rate: number | null | undefined): Cell =>
  sessions < FEW_SESSIONS
    ? cell(html`<span class="quiet">few</span> ${percent(rate)}`, rate)
    : valueCell('percent', rate)

function countCells({ values }: Figure) {
  const share = (rate: string) => valueCell('percent', values[rate])
  return [
    conversionCell(values.sessions ?? 0, values.conversion_rate),
    valueCell('number', values.sessions),
    valueCell('number', values.replied),
    share('reply_rate'),
    valueCell('number', values.emails),
    share('email_rate'),
    valueCell('number', values.subscribed),
    share('subscription_rate'),
    valueCell('number', values.paid),
  ]
}

const SESSIONS: Series = { label: 'Sessions', metric: 'sessions', unit: 'number' }
const FEW = `Rates are of all sessions. “few”: fewer than ${FEW_SESSIONS} sessions, of which a share says little.`

const conversionChart = (view: View, lines: Figure[], { values: ofAll }: Figure): Html =>
  section(
    `Conversion by ${view.span.by}`,
    chart(
      view,
      'conversion',
      seriesTable(
        view,
        `Sessions and the share that paid, by ${view.span.by}`,
        lines,
        [SESSIONS, inEarlier(SESSIONS), { label: 'Conversion', metric: 'conversion_rate', unit: 'percent' }],
        { ofAll },
      ),
      { kind: 'bar', lines: ['Conversion'] },
    ),
    { note: 'Bars: sessions, the faint line those of the earlier period. Line: the share that paid.' },
  )

export async function funnel(view: View): Promise<Page> {
  const id = view.params.funnel_id!
  const own = { ...view, filters: [...view.filters, { dimension: 'funnel', value: id } as const] }
  const [{ revenue: lacks }, names, known, sum, lines, screens, version, experiment, locales, countries] =
    await Promise.all([
      lackingOf(own, 'revenue'),
      namesOf(view),
      namesOfScreens(view, id),
      total(view, `${ALL},revenue,revenue_per_session,without_usd`, { funnel: id }),
      figures(view, 'sessions,paid,conversion_rate', { by: view.span.by, funnel: id, compare: true }),
      figures(view, 'answered,stopped', { by: 'screen', funnel: id }),
      ...['version', 'experiment', 'locale', 'country'].map((by) => figures(view, ALL, { by, funnel: id })),
    ])
  if (names.funnels[id] === undefined && !sum.values.sessions && screens.length === 0)
    throw new ApiError(404, 'object_not_found', `There is no funnel "${id}" with sessions in this period.`)
  const parts: [string, Figure[], (key: string) => string][] = [
    ['Version', version!, (key) => (key === '' ? 'none' : `Version ${key}`)],
    ['Experiment', experiment!, (key) => (key === '' ? 'none' : (names.experiments[key] ?? key))],
    ['Language', locales!, (key) => (key ? language(key) : 'unknown')],
    ['Country', countries!, (key) => (key ? country(key) : 'unknown')],
  ]
  return {
    title: names.funnels[id] ?? id,
    hasPeriod: true,
    actions: html`<a href="${view.href('/funnels')}">All funnels</a>`,
    question: 'Where do people leave this funnel, and who becomes a customer?',
    body: html`${tilesOf(view, sum, lacks)}
      ${(sum.values.sessions ?? 0) > 0 && section('From session to payment', stepsOf(sum))}
      ${conversionChart(view, lines, sum)}
      ${section('Screens', screensOf(view, sum, screens, known), { actions: screens.length > 0 && csvLink(view, 'screens'), note: 'Answered: sessions with an answer on the screen. Dropped off: sessions whose last answer is on it.' })}
      ${parts.filter(([title]) => title !== 'Language' || !repeats(locales!, countries!)).map(([title, found, name]) => partTable(view, title, found, name))}`,
  }
}

function screensOf(view: View, sum: Figure, screens: Figure[], names: Map<string, string>): Piece {
  const all = sum.values.sessions ?? 0
  const content: Table = {
    caption: 'Screens',
    columns: [
      { label: 'Screen' },
      ...numbers('Drop-off rate', 'Dropped off'),
      { label: '', bar: true },
      ...numbers('Answered', 'Share of sessions'),
    ],
    rows: screens.map(({ key, values: { answered, stopped } }, n) => [
      screenCell(view, screenOf(key!), names.get(screenOf(key!))),
      // The last screen has no drop-off: people who answer it have completed the funnel.
      ...(n === screens.length - 1
        ? [cell('', null), cell('completed', null)]
        : [valueCell('percent', answered ? (stopped ?? 0) / answered : null), valueCell('number', stopped ?? 0)]),
      cell(bar(all ? (answered ?? 0) / all : 0), null),
      valueCell('number', answered ?? 0),
      valueCell('percent', all ? (answered ?? 0) / all : null),
    ]),
  }
  const empty = html`<p>No answers in this period.</p>`
  return table(view, 'screens', content, { hideCaption: true, empty })
}

/** The names of the funnel's screens by their ids, where they have one; none for all projects together. */
export async function namesOfScreens(view: View, funnel_id: string): Promise<Map<string, string>> {
  if (!view.project) return new Map()
  const { data } = await view.call('getFunnelScreens', { params: { project_id: view.project.id, funnel_id } })
  return new Map(data.flatMap(({ screen_id, name }) => (name ? [[screen_id, words(name)]] : [])))
}

const ofFunnel = ({ params: { funnel_id } }: View): Record<string, string> => (funnel_id ? { funnel: funnel_id } : {})

function tilesOf(view: View, sum: Figure, lacks: Lacking): Html {
  const payments = rowsBehind(view, '/payments', 'payments', ofFunnel(view))
  return html`${tiles(
    tile('Sessions', sum, 'sessions', 'number', { rows: rowsBehind(view, '/sessions', 'sessions', ofFunnel(view)) }),
    tile('Conversion', sum, 'conversion_rate', 'percent', { rows: payments }),
    tile('Revenue', sum, 'revenue', 'usd', { lacks, rows: payments }),
    tile('Revenue per session', sum, 'revenue_per_session', 'usd', { isRate: true, lacks, rows: payments }),
  )}
      ${withoutDollars(view, sum)}`
}

/** A screen, linked to its answers. */
function screenCell(view: View, screen: string, name: string | undefined) {
  const path = pathOf('funnels', view.params.funnel_id!, 'screens', screen)
  const text = name === undefined ? screen : html`${name} <span class="quiet">${screen}</span>`
  const shown = view.project && view.mayOpen(path) ? html`<a href="${view.href(path)}">${text}</a>` : text
  return name === undefined ? cell(shown, screen) : named(shown, screen, name)
}

/** The id of a screen without its index. */
const screenOf = (key: string) => key.slice(key.indexOf(' ') + 1)

/** Whether each language is spoken in one country: then both tables would have the same numbers. */
function repeats(locales: Figure[], countries: Figure[]): boolean {
  const counts = (found: Figure[]) =>
    found
      .map(({ values }) => values.sessions ?? 0)
      .filter(Boolean)
      .sort((a, b) => a - b)
      .join()
  return counts(locales) === counts(countries)
}

function partTable(view: View, title: string, found: Figure[], name: (key: string) => string): Piece {
  const rows = mostFirst(found, 'sessions').filter(({ values }) => values.sessions)
  if (rows.length === 0) return ''
  const link = (key: string) => filterTo(view, '/sessions', title.toLowerCase(), key, name(key), ofFunnel(view))
  const content: Table = {
    caption: `By ${title.toLowerCase()}`,
    columns: [{ label: title }, ...countColumns],
    rows: rows.map((figure) => [named(link(figure.key!), figure.key!), ...countCells(figure)]),
  }
  return tableSection(view, title.toLowerCase(), content, { note: FEW })
}
