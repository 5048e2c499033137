// The answers of a screen: what people reply to each question, and which answers lead to a payment.
import type { Response } from '../call.ts'
import { unfiltered } from '../filter.ts'
import { bar, number, words } from '../format.ts'
import { type Html, html, type Piece } from '../html.ts'
import { namesOf, valueCell } from '../numbers.ts'
import { section, tableSection } from '../parts.ts'
import { cell, numbers, type Table } from '../sheet.ts'
import { noProject, type Page, PLAIN_PERIOD } from '../shell.ts'
import { daysOf, pathOf, type View } from '../view.ts'
import { conversionCell, namesOfScreens } from './funnels.ts'

type Answer = Response<'getAnswers'>['data'][number]

export async function answers(view: View): Promise<Page> {
  const title = 'Answers'
  if (!view.project) return { title, body: noProject(view) }
  const { funnel_id, screen_id } = view.params as { funnel_id: string; screen_id: string }
  const [{ data }, names, screens] = await Promise.all([
    view.call('getAnswers', {
      params: { project_id: view.project.id, funnel_id, screen_id },
      query: { ...daysOf(view), test: view.test },
    }),
    namesOf(view),
    namesOfScreens(view, funnel_id),
  ])
  const questions = [...Map.groupBy(data, ({ element_id }) => element_id).values()]
  const empty = html`<p>No session that began in this period replied on this screen. Choose a longer period.</p>`
  return {
    title: screens.get(screen_id) ?? screen_id,
    ...PLAIN_PERIOD,
    actions: html`<a href="${view.href(pathOf('funnels', funnel_id))}">${names.funnels[funnel_id] ?? funnel_id}</a>`,
    question: 'What do people answer, and which answers lead to a payment?',
    body: html`${questions.length === 0 ? section('Answers', empty) : questions.map((rows) => questionOf(view, rows))}`,
  }
}

const KINDS: Record<string, string> = {
  written: 'Written text',
  empty: 'No answer',
  other: 'Other choices',
  erased: 'Erased',
}

function questionOf(view: View, rows: Answer[]): Html {
  const all = rows.find(({ kind }) => kind === 'all')
  const given = rows.filter(({ kind }) => kind !== 'all')
  const { element_id, name } = rows[0]!
  const title = name === null ? element_id : words(name)
  const content: Table = {
    caption: `Answers to ${title}`,
    columns: [{ label: 'Answer' }, { label: '', bar: true }, ...numbers('Conversion', 'Sessions', 'Share', 'Paid')],
    rows: [
      ...given.map((row) => [cell(answerLink(view, row), nameOf(row)), cell(bar(row.share ?? 0), null), ...cells(row)]),
      ...(all && given.length > 1 ? [['All replies', cell('', null), ...cells(all)]] : []),
    ],
  }
  return tableSection(view, `answers-${element_id}`, content, {
    title,
    note: html`${unfiltered(view, ['funnel'])}${noteOf(given)}`,
  })
}

/** Says what a value of the table is not. */
function noteOf(given: Answer[]): Piece {
  const has = (kind: string) => given.some((row) => row.kind === kind)
  const isSeveral = given.reduce((sum, { share }) => sum + (share ?? 0), 0) > 1.0001
  const other = given.find(({ kind }) => kind === 'other')
  return html`Of the sessions that replied to it.
    ${isSeveral && ' Each of several choices counts.'}${has('written') && ' Written text is counted and not shown, because it may be personal.'}
    ${other && html` <strong>${number(other.sessions)} choices are not named: of each day and project, the 1,000 most frequent answers are kept.</strong>`}`
}

const nameOf = ({ kind, value }: Answer): string => (kind === 'value' ? value : (KINDS[kind] ?? kind))

/** The answer, linked to its sessions; the choices that are not named have none. */
function answerLink(view: View, row: Answer): Piece {
  const { kind, value, element_id } = row
  const text = kind === 'value' ? words(value) : html`<em>${nameOf(row)}</em>`
  if (kind === 'other' || !view.mayOpen('/sessions')) return text
  const { funnel_id, screen_id } = view.params
  const answer = [screen_id, element_id, kind, ...(kind === 'value' ? [value] : [])].join(' ')
  return html`<a href="${view.href('/sessions', { funnel: funnel_id!, answer })}">${text}</a>`
}

function cells(row: Answer) {
  return [
    conversionCell(row.sessions, row.conversion_rate),
    valueCell('number', row.sessions),
    valueCell('percent', row.share),
    valueCell('number', row.paid),
  ]
}
