// Marks the days whose figures an import changes, in its transaction: only here both the old and the new record are known.

import type { Kind, Scope } from '../../core/records/record.ts'
import { columnOf, DIMENSIONS } from '../../core/records/visit.ts'
import { dayIn, nextMonthIn, zoneOf } from '../../core/tenants/reporting.ts'
import { COUNTED_DAYS } from '../figures/experiments.ts'
import { DUE } from '../figures/renewals.ts'
import { pays } from '../figures/sales.ts'
import { end } from '../figures/subscriptions.ts'
import { sameKey } from './conditions.ts'
import { customer, differ, exposures, payment, type Rule, reportRows, rowsBack } from './figure-mark-rules.ts'
import { besideSubscription, eachOf, moneyOf, subscription } from './figure-mark-subscriptions.ts'
import type { MergeHooks } from './merge.ts'
import { staged } from './staging.ts'

/**
 * Statements of a kind's merge that mark days. Only changes that a figure depends on mark a day: the renewal of an old
 * subscription must not cause the day of its creation to be computed again. Too many marks cost time, a missing one is a
 * wrong figure.
 */
export function figureHooks(kind: Kind, scope: Scope): MergeHooks {
  const rule = RULES[kind.name]
  if (!rule) return {}
  const pair = `${kind.table} t join ${staged(kind)} s on ${sameKey(kind, scope)}`
  return {
    beforeUpdate: [insertMarks(scope, rule.changed(pair, scope))],
    beforeAdd: [insertMarks(scope, rule.added(`${staged(kind)} s`, scope))],
  }
}

function insertMarks({ project_id }: Scope, parts: string[]): string {
  return `
    insert into figure_marks (project_id, family, day)
    select distinct ${project_id}, family, ${dayIn('at', zoneOf(project_id))}
    from (${parts.join(' union all ')}) touched (family, at) where at is not null and isfinite(at)`
}

const SHOWN_OF_SESSION = ['created_at', 'profile_id', 'funnel_id', 'country', ...DIMENSIONS.map(columnOf)]

const session: Rule = {
  changed: (from, scope) => {
    const { project_id } = scope
    const changed = differ(...SHOWN_OF_SESSION, 'funnel_version', 'experiment_id', 'locale')
    return [
      `select 'visits', d.at from ${from} cross join lateral (values (t.created_at), (s.created_at)) d (at) where ${changed}`,
      `select 'visits', o.created_at from ${from} ${eachOf('t.profile_id', 's.profile_id')}
       join sessions o on o.project_id = ${project_id} and o.profile_id = each.id
       where ${differ('created_at', 'profile_id')}`,
      ...moneyOf(`${from} ${eachOf('t.profile_id', 's.profile_id')}`, 'each.id', scope, differ(...SHOWN_OF_SESSION)),
      ...['t', 's'].map((row) => `select 'experiments', ${row}.created_at from ${from} where ${changed}`),
      exposures(`${from} ${eachOf('t.profile_id', 's.profile_id')}`, 'each.id', project_id, changed),
    ]
  },
  // A person's first session is no longer the first when an earlier one is imported, nor the first of its month.
  added: (from, scope) => {
    const { project_id, organization_id } = scope
    const isFirst = `not exists (select from sessions e where e.project_id = ${project_id} and e.profile_id = s.profile_id
       and (e.created_at, e.id) < (s.created_at, s.id))`
    return [
      `select 'visits', s.created_at from ${from}`,
      `select 'experiments', s.created_at from ${from} where s.experiment_id is not null`,
      exposures(
        `(select * from ${from} where s.experiment_id is not null) s`,
        's.profile_id',
        project_id,
        's.experiment_id = e.experiment_id and e.created_at >= s.created_at',
      ),
      // Its own day is marked already.
      `select 'visits', o.created_at from ${from} join sessions o
         on o.project_id = ${project_id} and o.profile_id = s.profile_id
           and o.created_at >= day_begins(${dayIn('s.created_at', zoneOf(project_id))} + 1, ${zoneOf(project_id)})
       where o.created_at < ${nextMonthIn('s.created_at', zoneOf(project_id))} or ${isFirst}`,
      // What was paid earlier has another last session before it, and none of this one's dimensions, unless this is the first.
      `select 'sales', o.created_at from ${from} join transactions o
         on o.project_id = ${project_id} and o.profile_id = s.profile_id where o.created_at >= s.created_at or ${isFirst}`,
      `select 'sales', r.paid_at from ${from}
       join customers c on c.project_id = ${project_id} and c.profile_id = s.profile_id
       ${reportRows('c', organization_id)} where r.paid_at >= s.created_at or ${isFirst}`,
    ]
  },
}

const replyDay = (from: string, { project_id }: Scope, where: string) =>
  `select 'visits', o.created_at from ${from}
   join sessions o on o.project_id = ${project_id} and o.id = s.session_id where ${where}`

const reply: Rule = {
  changed: (from, scope) => [replyDay(from, scope, differ('screen_index', 'element_type', 'value::text'))],
  added: (from, scope) => [replyDay(from, scope, 'true')],
}

const profile: Rule = {
  changed: (from, { project_id, organization_id }) => {
    const moved = differ('country', 'preview')
    return [
      `select 'visits', o.created_at from ${from} join sessions o on o.project_id = ${project_id} and o.profile_id = t.id
       where (t.email is null) <> (s.email is null) or t.preview <> s.preview`,
      exposures(from, 't.id', project_id, 't.preview <> s.preview'),
      `select family, o.created_at from ${from} join transactions o on o.project_id = ${project_id} and o.profile_id = t.id
       cross join (values ('sales'), ('subscriptions')) families (family) where ${moved}`,
      `select 'subscriptions', d.at from ${from}
       join subscriptions o on o.project_id = ${project_id} and o.profile_id = t.id
       cross join lateral (values (o.created_at), (${end('o')})) d (at) where ${moved}`,
      `select 'renewals', o.period_ends_at from ${from}
       join subscriptions o on o.project_id = ${project_id} and o.profile_id = t.id
       where t.preview <> s.preview and o.status in ${DUE} and o.renews`,
      // A payment of a subscription may be a transaction of another profile.
      `select 'subscriptions', o.created_at from ${from}
       join subscriptions u on u.project_id = ${project_id} and u.profile_id = t.id
       join transactions o on o.project_id = ${project_id} and o.subscription_id = u.id where ${moved}`,
      `select 'sales', r.paid_at from ${from}
       join customers c on c.project_id = ${project_id} and c.profile_id = t.id
       ${reportRows('c', organization_id)} where ${differ('country', 'funnel_id', 'preview')}`,
    ]
  },
  // No record refers to a profile that did not exist.
  added: () => [`select 'visits', null::timestamptz where false`],
}

// Experiments count no later payments, so that a renewal marks no day of an old one.
const IN_TIME = `e.created_at <= s.created_at and e.created_at > s.created_at - interval '${COUNTED_DAYS} days'`

const transaction: Rule = {
  changed: (from, scope) => {
    const { project_id } = scope
    const changed = differ(
      ...'created_at, profile_id, subscription_id, session_id, funnel_id, currency, price, price_usd, sandbox'.split(
        ', ',
      ),
    )
    return [
      `select family, d.at from ${from} cross join lateral (values (t.created_at), (s.created_at)) d (at)
       cross join (values ('sales'), ('subscriptions')) families (family) where ${changed}`,
      `select family, o.created_at from ${from} ${eachOf('t.profile_id', 's.profile_id')}
       join transactions o on o.project_id = ${project_id} and o.profile_id = each.id
       cross join (values ('sales'), ('subscriptions')) families (family) where ${changed}`,
      `select family, o.created_at from ${from} ${eachOf('t.subscription_id', 's.subscription_id')}
       join transactions o on o.project_id = ${project_id} and o.subscription_id = each.id
       cross join (values ('sales'), ('subscriptions')) families (family) where ${changed}`,
      `select 'subscriptions', d.at from ${from} ${eachOf('t.subscription_id', 's.subscription_id')}
       join subscriptions u on u.project_id = ${project_id} and u.id = each.id
       cross join lateral (values (u.created_at), (${end('u')})) d (at) where ${changed}`,
      besideSubscription(
        `${from} ${eachOf('t.subscription_id', 's.subscription_id')}
         join subscriptions u on u.project_id = ${project_id} and u.id = each.id`,
        'u.profile_id',
        'u.id',
        project_id,
        changed,
      ),
      `select 'visits', e.created_at from ${from} cross join lateral (values (t.subscription_id), (s.subscription_id)) owner (id)
       left join subscriptions u on u.project_id = ${project_id} and u.id = owner.id
       ${eachOf('t.session_id', 's.session_id', 'u.session_id')}
       join sessions e on e.project_id = ${project_id} and e.id = each.id
       where ${changed}`,
      ...moneyOf(`${from} ${eachOf('t.profile_id', 's.profile_id')}`, 'each.id', scope, changed),
      exposures(`${from} ${eachOf('t.profile_id', 's.profile_id')}`, 'each.id', project_id, changed),
      // The subscription may be of another profile than its payment.
      exposures(
        `${from} ${eachOf('t.subscription_id', 's.subscription_id')}
         join subscriptions u on u.project_id = ${project_id} and u.id = each.id`,
        'u.profile_id',
        project_id,
        changed,
      ),
    ]
  },
  added: (from, scope) => {
    const { project_id } = scope
    const isFirst = `s.price > 0 and not exists (
      select from transactions o where o.project_id = ${project_id} and o.subscription_id = s.subscription_id and ${pays('o', 'u')}
        and (o.created_at, o.id) < (s.created_at, s.id))`
    const joined = `${from} left join subscriptions u on u.project_id = ${project_id} and u.id = s.subscription_id`
    return [
      `select 'sales', s.created_at from ${from}`,
      exposures(from, 's.profile_id', project_id, IN_TIME),
      exposures(joined, 'u.profile_id', project_id, IN_TIME),
      // The first payment of their payer in the month may be earlier now.
      `select 'sales', o.created_at from ${from}
       join transactions o on o.project_id = ${project_id} and o.profile_id = s.profile_id
         and o.created_at >= s.created_at and o.created_at < ${nextMonthIn('s.created_at', zoneOf(project_id))}`,
      `select family, d.at from ${joined}
       cross join lateral (
         (select o.created_at from transactions o where o.project_id = ${project_id} and o.subscription_id = u.id
            and (o.created_at, o.id) > (s.created_at, s.id) and o.price > 0 order by o.created_at, o.id limit 2)
         union all
         -- What was free before the first payment was the beginning, and is a renewal after it.
         select o.created_at from transactions o where o.project_id = ${project_id} and o.subscription_id = u.id
           and (o.created_at, o.id) > (s.created_at, s.id) and o.price = 0) d (at)
       cross join (values ('sales'), ('subscriptions')) families (family) where ${isFirst}`,
      `select 'subscriptions', d.at from ${joined}
       cross join lateral (values (s.created_at), (u.created_at), (${end('u')})) d (at) where u.id is not null and ${isFirst}`,
      besideSubscription(joined, 'u.profile_id', 'u.id', project_id, isFirst),
      `select 'visits', e.created_at from ${joined} ${eachOf('s.session_id', 'u.session_id')}
       join sessions e on e.project_id = ${project_id} and e.id = each.id
       where s.price > 0 and (u.id is null or s.session_id is distinct from u.session_id or (${isFirst}))`,
      // What went back of the payment has its product.
      `select 'sales', r.paid_at from ${from}
       join customers c on c.project_id = ${project_id} and c.profile_id = s.profile_id
       ${rowsBack('c', scope.organization_id)} where s.subscription_id is not null`,
      // The first payment of the person may be another one now.
      ...moneyOf(
        from,
        's.profile_id',
        scope,
        `s.price > 0 and not exists (
          select from transactions e where e.project_id = ${project_id} and e.profile_id = s.profile_id and e.price > 0
            and (e.created_at, e.id) < (s.created_at, s.id))`,
      ),
    ]
  },
}

const RULES: Record<string, Rule> = { session, reply, profile, subscription, transaction, customer, payment }
