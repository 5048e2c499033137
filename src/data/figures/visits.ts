// Figures of sessions: the steps of a funnel that they reach, by the day on which the session began.
import { dayOf, type Family, hourOf, monthStart, orNone, within } from './family.ts'
import { alone, VISITED, visitColumns, with_ } from './splits.ts'

// The session of a payment is that of the transaction, or that of its subscription. The payments of each person are read once: read
// for each session, they take hours for a person with thousands of both, such as a tester. `offset 0` has them read by their index. The
// planner is to expect few of them: it looks for each session in all of them if it expects more than fit into its memory.
export const PAID = `
    select t.profile_id, payment.session_id
    from (select distinct s.profile_id from sessions s where s.project_id = $1 and ${within('s.created_at')}) visitors
    cross join lateral (
      select t.profile_id, t.session_id, (
        select u.session_id from subscriptions u where u.project_id = $1 and u.id = t.subscription_id) as subscribed_in
      from transactions t
      where t.project_id = $1 and t.profile_id = visitors.profile_id and t.price > 0 offset 0) t
    cross join lateral (values (t.session_id), (t.subscribed_in)) payment (session_id)
    where (case when t.profile_id is not null and payment.session_id is not null then 1 else 0 end) = 1`

export const visits: Family = {
  name: 'visits',
  table: 'figures_visits',
  dimensions: ['hour', 'funnel', 'version', 'experiment', 'locale', 'country', ...VISITED],
  splits: [
    ...alone(['hour', 'funnel', 'country', 'locale', 'experiment', ...VISITED]),
    ...with_('funnel', ['version', 'experiment', 'locale', 'country', ...VISITED]),
    ...with_('source', ['medium', 'campaign', 'country']),
    ...with_('campaign', ['content', 'term', 'country']),
    ...with_('variant', ['source', 'campaign', 'country']),
    ['experiment', 'variant'],
  ],
  limited: VISITED,
  money: false,
  measures: ['sessions', 'people', 'visitors', 'replied', 'emailed', 'subscribed', 'paid'],
  facts: `
    with paid as materialized (${PAID})
    select ${dayOf('s.created_at')} as day, ${hourOf('s.created_at')} as hour, p.preview as test, ${orNone('s.funnel_id')} as funnel,
      ${orNone('s.funnel_version::text')} as version, ${orNone('s.experiment_id')} as experiment,
      ${orNone('s.locale')} as locale, ${orNone('s.country')} as country, ${visitColumns('s')},
      1 as sessions,
      (not exists (
        select from sessions o where o.project_id = s.project_id and o.profile_id = s.profile_id
          and (o.created_at, o.id) < (s.created_at, s.id)))::int as people,
      (not exists (
        select from sessions o where o.project_id = s.project_id and o.profile_id = s.profile_id
          and o.created_at >= ${monthStart('s.created_at')}
          and (o.created_at, o.id) < (s.created_at, s.id)))::int as visitors,
      (exists (select from replies r where r.project_id = s.project_id and r.session_id = s.id))::int as replied,
      (p.email is not null or p.email_erased)::int as emailed,
      (exists (
        select from subscriptions u where u.project_id = s.project_id and u.session_id = s.id))::int as subscribed,
      ((s.profile_id, s.id) in (select profile_id, session_id from paid))::int as paid
    from sessions s join profiles p on p.project_id = s.project_id and p.id = s.profile_id
    where s.project_id = $1 and ${within('s.created_at')}`,
}

const SCREENS = `
    select day, test, funnel, screen, country, source, campaign, variant, 1 as answered, last::int as stopped from (
      select ${dayOf('s.created_at')} as day, p.preview as test, ${orNone('s.funnel_id')} as funnel,
        ${orNone('s.country')} as country, ${visitColumns('s')},
        lpad(r.screen_index::text, greatest(5, length(r.screen_index::text)), '0') || ' ' || r.screen_id as screen,
        row_number() over (partition by s.id order by r.screen_index desc, r.screen_id desc) = 1 as last
      from sessions s join profiles p on p.project_id = s.project_id and p.id = s.profile_id
      cross join lateral (
        select distinct screen_index, screen_id from replies r
        where r.project_id = s.project_id and r.session_id = s.id) r
      where s.project_id = $1 and ${within('s.created_at')}) answers`

/** Drop-off by screen. The subkey is the index of the screen in at least five digits, a space, and the id of the screen. */
export const screens: Family = {
  name: 'visits',
  table: 'figures_screens',
  dimensions: ['funnel', 'screen'],
  splits: [['funnel', 'screen']],
  money: false,
  measures: ['answered', 'stopped'],
  facts: SCREENS,
  more: { dimensions: ['country', 'source', 'campaign', 'variant'], facts: SCREENS },
}
