// Operations: the sync horizon and its readers, the audit log, and the doctor's findings.

import { DAY_S, dateOf } from '../../../lib/days.ts'
import type { Finding } from '../../doctor/finding.ts'
import { examineNow, findingsOf } from '../../doctor/kept-findings.ts'
import { allOf, type Item, type Response } from '../call.ts'
import { duration, id, number, plural, status, time } from '../format.ts'
import { html } from '../html.ts'
import { listed, pageLinks } from '../lists.ts'
import { chosenFilters, facts, filters, tableSection } from '../parts.ts'
import { type Cell, cell, columns, numbers, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { csvLink, table } from '../table.ts'
import { projectOf, type View } from '../view.ts'

export async function sync(view: View): Promise<Page> {
  if (!view.project) return { title: 'Sync', body: noProject(view) }
  const params = { project_id: projectOf(view).id }
  const [state, readers, writers] = await Promise.all([
    view.call('getProjectState', { params }),
    view.call('listSyncReaders', { params }),
    view.call('listRecordWriters', { params }),
  ])
  const content: Table = {
    caption: 'Readers',
    columns: [...columns('Key', 'List', 'Last read', 'Read up to'), ...numbers('Lag', 'Rows today')],
    rows: readers.data.map((one) => [
      cell(html`${one.key_name || 'First key'}<br>${id(one.key_id)}`, one.key_id),
      one.list,
      time(one.last_seen_at),
      time(one.window_to),
      cell(
        html`${duration(one.behind_seconds)}${one.behind_seconds > DAY_S && html` ${status('behind')}`}`,
        one.behind_seconds,
      ),
      cell(number(one.rows_of_day), one.rows_of_day),
    ]),
  }
  return {
    title: 'Sync',
    question: 'Does every reader have the changes, and who is behind?',
    body: html`
      ${facts({
        'Sync horizon': time(state.horizon),
        Lag: duration(Math.max(0, state.horizon_lag_seconds)),
        'Oldest open transaction':
          state.oldest_writer_seconds === null ? 'none' : duration(state.oldest_writer_seconds),
        'Figures up to date as of': time(state.figures_as_of),
      })}
      <p class="quiet">All changes before the horizon are visible to readers, and none will be added before it. A long import holds it back until it commits.</p>
      ${tableSection(view, 'readers', content, { note: readers.data.length > 0 && 'Those that are furthest behind first. Behind: by more than a day.', empty: html`<h3>No readers in the last 30 days</h3><p>This page lists clients that sync with <code>filter[updated_at.from]</code> or the export. <a href="/docs/guides/data-api">How to sync</a>.</p>` })}
      ${tableSection(view, 'writers', writerTable(view.span.today, writers.data), { note: writers.data.length > 0 && 'What each key sent to POST /records in the last 30 days, by day and kind of record.', short: true, empty: html`<h3>No writers in the last 30 days</h3><p>This page lists keys that write records. <a href="/docs/guides/data-api">How to write records</a>.</p>` })}`,
  }
}

const writerTable = (today: string, data: Response<'listRecordWriters'>['data']): Table => ({
  caption: 'Writers',
  columns: [
    ...columns('Key', 'Last seen', 'Day', 'Records'),
    ...numbers('Accepted', 'Rejected'),
    { label: 'Why rejected' },
  ],
  rows: data.map((one) => [
    cell(html`${one.key_name || 'First key'}<br>${id(one.key_id)}`, one.key_id),
    time(one.last_seen_at),
    cell(dateOf(one.day, today), one.day),
    one.record || 'of no kind',
    cell(number(one.accepted), one.accepted),
    cell(number(one.rejected), one.rejected),
    one.reasons.map(({ code, reason, records }) => `${records} × ${code}: ${reason}`).join(' '),
  ]),
})

export async function audit(view: View): Promise<Page> {
  const query = chosenFilters(view, 'target', 'actor', 'action', 'from', 'to')
  const [list, operators, verdict] = await Promise.all([
    listed(view, 'audit', 'listAuditEntries', { query }, { rows: 50 }),
    allOf(view.call, 'listOperators'),
    view.query.has('verify') ? view.call('verifyAudit') : undefined,
  ])
  const isFiltered = Object.keys(query).length > 0
  const nameOf = (actor: string) => operators.find(({ id }) => id === actor)?.name ?? actor
  const content: Table = {
    caption: 'Entries',
    columns: [...columns('Time', 'Action', 'Target', 'Change', 'Actor', 'Source'), { label: 'No.', number: true }],
    rows: list.data.map((one) => [
      time(one.at),
      html`<a href="${view.href('/audit', { action: one.action })}">${one.action}</a>`,
      html`<a href="${view.href('/audit', { target: one.target })}">${one.target}</a>`,
      change(one),
      cell(
        html`<a href="${view.href('/audit', { actor: one.actor })}">${nameOf(one.actor)}</a><br><span class="quiet">${one.actor_kind}</span>`,
        one.actor,
      ),
      one.source,
      cell(number(one.sequence), one.sequence),
    ]),
  }
  return {
    title: 'Audit log',
    question: 'Who changed what, and when?',
    actions: html`<a href="${view.href('/audit', { verify: '1' })}">Verify the log</a>`,
    body: html`
      ${verdict && html`<p class="${verdict.wrong.length === 0 ? 'done' : 'failed'}" role="status">${verdict.wrong.length === 0 ? `All ${verdict.entries} entries are present and unchanged.` : verdict.wrong.join(' ')}</p>`}
      ${tableSection(view, 'audit', content, {
        above: filters(view, [
          { name: 'actor', label: 'Actor', options: namesOfActors(operators, query.actor) },
          { name: 'action', label: 'Action' },
          { name: 'target', label: 'Target' },
          { name: 'from', label: 'From', type: 'day' },
          { name: 'to', label: 'To', type: 'day' },
        ]),
        empty: html`<p>${isFiltered ? 'No entries match these filters.' : 'No entries yet: no operator has changed anything.'}</p>`,
        below: pageLinks(view, list),
      })}`,
  }
}

/** The keys of operators, and the chosen actor, who may be a person or a key that is gone. */
const namesOfActors = (operators: Item<'listOperators'>[], chosen: string | undefined): Record<string, string> => ({
  ...Object.fromEntries(operators.map(({ id, name }) => [id, name])),
  ...(chosen !== undefined && !operators.some((one) => one.id === chosen) && { [chosen]: chosen }),
})

function change({ before, after }: Item<'listAuditEntries'>): Cell {
  const texts = Object.entries({ before, after }).flatMap(([when, value]) =>
    value ? [`${when} ${JSON.stringify(value)}`] : [],
  )
  const shown = html`<details><summary>Show</summary>${texts.map((text) => html`<pre>${text}</pre>`)}</details>`
  return cell(texts.length > 0 && shown, texts.join(' '))
}

export async function doctor(view: View): Promise<Page> {
  const { at, findings } = await (view.query.has('now') ? examineNow : findingsOf)(view.app)
  const order = { failed: 0, warning: 1, ok: 2 }
  const own = findings.filter((finding) => isHere(view, finding))
  const others = findings.filter((finding) => finding.level !== 'ok' && !own.includes(finding)).length
  const sorted = own.toSorted((a, b) => order[a.level] - order[b.level])
  const wrong = sorted.filter(({ level }) => level !== 'ok')
  return {
    title: 'Doctor',
    question: 'Is the installation well, and what needs attention?',
    actions: html`<a class="button" href="${view.href('/doctor', { now: '1' })}">Check now</a>`,
    body: html`<p><span id="findings" class="${wrong.length === 0 ? 'fine' : 'care'}">${verdict(sorted.length, wrong)} <span class="quiet">As of ${time(at)}.</span></span></p>
      ${wrong.length > 0 && tableSection(view, 'wrong', findingTable('What needs attention', wrong))}
      ${
        wrong.length === 0
          ? tableSection(view, 'doctor', findingTable('Findings', sorted))
          : sorted.length > wrong.length &&
            html`<details class="card"><summary>${plural(sorted.length - wrong.length, 'check')} without a finding</summary>
              ${table(view, 'doctor', findingTable('Checks without a finding', sorted.slice(wrong.length)), { hideCaption: true })}<p class="actions">${csvLink(view, 'doctor')}</p></details>`
      }
      ${others > 0 && html`<p class="quiet">${plural(others, 'finding')} of other organizations and projects: choose them, or run <code>tundish doctor</code>.</p>`}`,
  }
}

const findingTable = (caption: string, findings: Finding[]): Table => ({
  caption,
  columns: columns('Check', 'Level', 'Finding', 'What to do'),
  rows: findings.map(({ check, level, message, fix }) => [check, status(level), message, fix ?? '']),
})

/** Whether a finding is of the installation, or of the chosen organization or project. */
export function isHere({ project, projects, organization }: View, { organization_id, project_id }: Finding): boolean {
  if (organization_id !== undefined) return organization_id === organization?.id
  if (project_id === undefined) return true
  if (project) return project_id === project.id
  return projects.some(({ id, organization_id: owner }) => id === project_id && owner === organization?.id)
}

function verdict(all: number, wrong: Finding[]): string {
  if (wrong.length === 0) return `All ${all} checks passed.`
  const names = [...new Set(wrong.map(({ check }) => check))].join(', ')
  return `${wrong.length} of ${all} checks ${wrong.length === 1 ? 'needs' : 'need'} attention: ${names}.`
}
