// The morning digest: the main figures of yesterday, compared with the day before and the same weekday, and what the doctor finds.
import type { App } from '../../app.ts'
import type { MetricName } from '../../data/figures/metrics.ts'
import { addDays, dateOf } from '../../lib/days.ts'
import type { Finding } from '../doctor/finding.ts'
import { findingsOf } from '../doctor/kept-findings.ts'
import { type Content, mrrWithoutLines, nameOf, shown, staleLine, withoutLine } from './content.ts'
import { addMessages } from './queue.ts'
import { figureOf, mrrWithout, valueIn } from './rule.ts'
import { isToDo, type Shared, type State } from './state.ts'

const MAIN: readonly MetricName[] = [
  'revenue',
  'refunds',
  'sales',
  'customers',
  'new_subscriptions',
  'mrr',
  'sessions',
  'conversion_rate',
  'acceptance_rate',
]
const MAX_FINDINGS = 5

/** Makes the digest of yesterday, unless there is one. */
export async function writeDigest(app: Shared, state: State): Promise<void> {
  const [due] = await app.db.query(IS_DUE, [state.projectId, state.yesterday])
  if (!due) return
  const content = JSON.stringify(await digestContent(app, state))
  await app.db.query(ADD, [state.projectId, state.yesterday, content])
}

const IS_DUE = `
  select from alert_settings where project_id = $1 and ${isToDo('digest_day', '$2::date')}`

const ADD = `
  with claimed as (
    update alert_settings set digest_day = $2::date
    where project_id = $1 and digest_hour is not null and ${isToDo('digest_day', '$2::date')} returning 1
  )
  ${addMessages('digest', 'digest', `''`, '$2::date', '$3::jsonb')}`

export async function digestContent(app: Shared, state: State): Promise<Content> {
  const { projectId, yesterday } = state
  const amount = (metric: MetricName, value: number | null) => shown(metric, value, state.currency)
  const days = [yesterday, addDays(yesterday, -1), addDays(yesterday, -7)]
  const [[now, before, week], left] = await Promise.all([
    Promise.all(days.map((day) => figureOf(app.db, projectId, day, [...MAIN, 'without_usd']))),
    mrrWithout(app.db, projectId, yesterday),
  ])
  const figures = MAIN.map((metric) => ({
    metric,
    value: valueIn(now!, metric),
    day_before: valueIn(before!, metric),
    week_before: valueIn(week!, metric),
  }))
  return {
    title: `${state.name}: ${amount('revenue', figures[0]!.value)} revenue on ${dateOf(yesterday)}`,
    lines: [
      ...(state.isComplete ? [] : [`Not complete: ${staleLine(state)}`]),
      ...figures.map(
        ({ metric, value, day_before, week_before }) =>
          `${capital(nameOf(metric))}: ${amount(metric, value)} (day before ${amount(metric, day_before)}, a week earlier ${amount(metric, week_before)})`,
      ),
      ...(now!.without_usd ? [withoutLine(now!.without_usd)] : []),
      ...mrrWithoutLines(left),
      ...(await findings(app, projectId)),
    ],
    path: `/?${new URLSearchParams({ project: projectId, from: yesterday, to: yesterday })}`,
    data: { is_complete: state.isComplete, figures },
  }
}

const capital = (text: string) => text[0]!.toUpperCase() + text.slice(1)

/** What the doctor finds about the project, its organization and the installation. */
async function findings(app: Shared, projectId: string): Promise<string[]> {
  const [project] = await app.db.query('select organization_id from projects where id = $1', [projectId])
  const isHere = ({ organization_id, project_id }: Finding) =>
    organization_id !== undefined
      ? organization_id === project?.organization_id
      : project_id === undefined || project_id === projectId
  try {
    const { findings } = await findingsOf(app as App)
    const here = findings.filter(isHere)
    const failed = here.filter(({ level }) => level === 'failed')
    const warnings = here.filter(({ level }) => level === 'warning').length
    if (failed.length + warnings === 0) return ['Doctor: all checks passed.']
    const more = failed.length - MAX_FINDINGS
    return [
      `Doctor: ${failed.length} failed, ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}.`,
      ...failed.slice(0, MAX_FINDINGS).map(({ check, message }) => `${check}: ${message}`),
      ...(more > 0 ? [`… and ${more} more.`] : []),
    ]
  } catch (error) {
    app.log.error({ err: error }, 'The checks of the doctor could not be run for a digest.')
    return ['Doctor: the checks could not be run.']
  }
}
