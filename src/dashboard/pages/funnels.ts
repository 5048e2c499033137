// Funnels: how far sessions come, in all of them and in one.
import { ApiError } from '../../lib/errors.ts'
import { bar, country, language, percent } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { type Figure, figures, namesOf, seriesTable, show, total } from '../numbers.ts'
import { section, steps, tableSection, tile, tiles } from '../parts.ts'
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
    total(view, STEPS),
    figures(view, `${ALL},revenue,revenue_per_session`, { by: 'funnel' }),
  ])
  const rows = each.filter(({ values }) => values.sessions).sort((a, b) => b.values.sessions! - a.values.sessions!)
  const content: Table = {
    caption: 'Each funnel',
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
      show('usd', figure.values.revenue ?? 0),
      show('usd', figure.values.revenue_per_session ?? 0),
    ]),
  }
  const empty = html`<h3>No sessions in this period</h3><p>Sessions come in by <a href="/docs/guides/import">an import</a>. Choose a longer period to see older ones.</p>`
  return {
    title: 'Funnels',
    hasPeriod: true,
    body: html`${(sum.values.sessions ?? 0) > 0 && section('From session to payment', stepsOf(sum), { note: 'Of the sessions that began in the period, whenever their later steps happened.' })}
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
    const { shown } = show('number', values[count])
    return cell(html`${shown} <span class="quiet">${percent(values[rate])}</span>`, values[count])
  }
  return [
    show('number', values.sessions),
    withRate('replied', 'reply_rate'),
    withRate('emails', 'email_rate'),
    withRate('subscribed', 'subscription_rate'),
    show('number', values.paid),
    show('percent', values.conversion_rate),
  ]
}

export async function funnel(view: View): Promise<Page> {
  const id = view.params.funnel_id!
  const [names, sum, lines, screens, version, experiment, locales, countries] = await Promise.all([
    namesOf(view),
    total(view, `${ALL},revenue,revenue_per_session`, { funnel: id }),
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
        tile('Revenue per session', sum, 'revenue_per_session', 'usd'),
      )}
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
        { note: 'Columns are sessions; the line is the share of them that paid.' },
      )}
      ${section('Screens', screensOf(view, sum, screens), { actions: screens.length > 0 && csvLink(view, 'screens'), note: 'A bar shows the sessions that answered on the screen; stopped are those whose last answer was there, on the last screen all.' })}
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
      ...['Answered', 'Of all sessions', 'Stopped here', 'Share that stopped'].map((label) => ({
        label,
        number: true,
      })),
    ],
    rows: screens.map(({ key, values: { answered, stopped } }) => [
      cell(key!.slice(6), key!.slice(6)),
      cell(bar(all ? (answered ?? 0) / all : 0), null),
      show('number', answered ?? 0),
      show('percent', all ? (answered ?? 0) / all : null),
      show('number', stopped ?? 0),
      show('percent', answered ? (stopped ?? 0) / answered : null),
    ]),
  }
  const empty = html`<p>No session of this period has an answer on a screen.</p>`
  return table(view, 'screens', content, { hideCaption: true, empty })
}

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
