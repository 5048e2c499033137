// Funnels: how many sessions reach each step, over all funnels and in one.
import { ApiError } from '../../../lib/errors.ts'
import { bar, country, language, percent } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { type Figure, figures, namesOf, seriesTable, total, valueCell } from '../numbers.ts'
import { section, steps, tableSection, tile, tiles, withoutDollars } from '../parts.ts'
import { type Column, cell, type Table } from '../sheet.ts'
import { hasProjects, noProject, type Page } from '../shell.ts'
import { chart, csvLink, table } from '../table.ts'
import { pathOf, type View } from '../view.ts'

const STEPS = 'sessions,replied,emails,subscribed,paid'
const ALL = `${STEPS},reply_rate,email_rate,subscription_rate,conversion_rate`

export async function funnels(view: View): Promise<Page> {
  if (!view.organization || !hasProjects(view)) return { title: 'Funnels', body: noProject(view) }
  const [names, sum, each] = await Promise.all([
    namesOf(view),
    total(view, `${STEPS},without_usd`),
    figures(view, `${ALL},revenue,revenue_per_session`, { by: 'funnel' }),
  ])
  const rows = each.filter(({ values }) => values.sessions).sort((a, b) => b.values.sessions! - a.values.sessions!)
  const content: Table = {
    caption: 'By funnel',
    columns: [
      { label: 'Funnel' },
      ...countColumns,
      { label: 'Revenue', number: true },
      { label: 'Per session', number: true },
    ],
    rows: rows.map((figure) => [
      figure.key === ''
        ? 'No funnel'
        : cell(
            html`<a href="${view.href(pathOf('funnels', figure.key!))}">${names.funnels[figure.key!] ?? figure.key}</a>`,
            figure.key,
          ),
      ...countCells(figure),
      valueCell('usd', figure.values.revenue ?? 0),
      valueCell('usd', figure.values.revenue_per_session ?? 0),
    ]),
  }
  const empty = html`<h3>No sessions in this period</h3><p>Load sessions with <a href="/docs/guides/import">an import</a>, or choose a longer period.</p>`
  return {
    title: 'Funnels',
    hasPeriod: true,
    isGrouped: false,
    isCompared: false,
    body: html`${withoutDollars(view, sum)}${(sum.values.sessions ?? 0) > 0 && section('From session to payment', stepsOf(sum), { note: 'Sessions that began in this period. Their later steps are counted whenever they happened.' })}
      ${tableSection(view, 'funnels', content, { empty })}`,
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
  { label: 'Sessions', number: true },
  { label: 'Replied', number: true },
  { label: 'E-mail', number: true },
  { label: 'Subscribed', number: true },
  { label: 'Paid', number: true },
  { label: 'Conversion', number: true },
]

function countCells({ values }: Figure) {
  const withRate = (count: string, rate: string) => {
    const { shown } = valueCell('number', values[count])
    // The rate is of the step before, which can be left out: more than all of it says nothing.
    const share = values[rate] ?? null
    return cell(
      share !== null && share > 1 ? shown : html`${shown} <span class="quiet">${percent(share)}</span>`,
      values[count],
    )
  }
  return [
    valueCell('number', values.sessions),
    withRate('replied', 'reply_rate'),
    withRate('emails', 'email_rate'),
    withRate('subscribed', 'subscription_rate'),
    valueCell('number', values.paid),
    valueCell('percent', values.conversion_rate),
  ]
}

export async function funnel(view: View): Promise<Page> {
  const id = view.params.funnel_id!
  const [names, sum, lines, screens, version, experiment, locales, countries] = await Promise.all([
    namesOf(view),
    total(view, `${ALL},revenue,revenue_per_session,without_usd`, { funnel: id }),
    figures(view, 'sessions,paid,conversion_rate', { by: view.span.by, funnel: id }),
    figures(view, 'answered,stopped', { by: 'screen', funnel: id }),
    ...['version', 'experiment', 'locale', 'country'].map((by) => figures(view, ALL, { by, funnel: id })),
  ])
  if (names.funnels[id] === undefined && !sum.values.sessions && screens.length === 0)
    throw new ApiError(404, 'object_not_found', `There is no funnel "${id}" with sessions in this period.`)
  const series = [
    { label: 'Sessions', metric: 'sessions', unit: 'number' },
    { label: 'Conversion', metric: 'conversion_rate', unit: 'percent' },
  ] as const
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
    body: html`
      ${tiles(
        tile('Sessions', sum, 'sessions', 'number'),
        tile('Conversion', sum, 'conversion_rate', 'percent'),
        tile('Revenue', sum, 'revenue', 'usd'),
        tile('Revenue per session', sum, 'revenue_per_session', 'usd', { isRate: true }),
      )}
      ${withoutDollars(view, sum)}
      ${(sum.values.sessions ?? 0) > 0 && section('From session to payment', stepsOf(sum))}
      ${section(
        `Conversion by ${view.span.by}`,
        chart(
          view,
          'conversion',
          seriesTable(view, `Sessions and the share that paid, by ${view.span.by}`, lines, [...series]),
          {
            kind: 'bar',
            lines: ['Conversion'],
          },
        ),
        { note: 'Bars: sessions. Line: the share of them that paid.' },
      )}
      ${section('Screens', screensOf(view, sum, screens), { actions: screens.length > 0 && csvLink(view, 'screens'), note: 'Answered: sessions with an answer on the screen. Dropped off: sessions whose last answer is on it. On the last screen, that is all of them.' })}
      ${parts.map(([title, found, name]) => partTable(view, title, found, name))}`,
  }
}

function screensOf(view: View, sum: Figure, screens: Figure[]): Piece {
  const all = sum.values.sessions ?? 0
  const content: Table = {
    caption: 'Screens',
    columns: [
      { label: 'Screen' },
      { label: '', bar: true },
      ...['Answered', 'Share of sessions', 'Dropped off', 'Drop-off rate'].map((label) => ({
        label,
        number: true,
      })),
    ],
    rows: screens.map(({ key, values: { answered, stopped } }) => [
      cell(screenOf(key!), screenOf(key!)),
      cell(bar(all ? (answered ?? 0) / all : 0), null),
      valueCell('number', answered ?? 0),
      valueCell('percent', all ? (answered ?? 0) / all : null),
      valueCell('number', stopped ?? 0),
      valueCell('percent', answered ? (stopped ?? 0) / answered : null),
    ]),
  }
  const empty = html`<p>No answers in this period.</p>`
  return table(view, 'screens', content, { hideCaption: true, empty })
}

/** The id of a screen without its index. */
const screenOf = (key: string) => key.slice(key.indexOf(' ') + 1)

function partTable(view: View, title: string, found: Figure[], name: (key: string) => string): Piece {
  const rows = found.filter(({ values }) => values.sessions).sort((a, b) => b.values.sessions! - a.values.sessions!)
  if (rows.length === 0) return ''
  const content: Table = {
    caption: `By ${title.toLowerCase()}`,
    columns: [{ label: title }, ...countColumns],
    rows: rows.map((figure) => [cell(name(figure.key!), figure.key), ...countCells(figure)]),
  }
  return tableSection(view, title.toLowerCase(), content)
}
