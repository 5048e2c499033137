// The doctor's check of people with several profiles: the same address, or a session of one that led to a payment of another.
import { isAddress } from '../../core/erasure/twins.ts'
import { mergeOrder } from '../../core/people/order.ts'
import type { Db } from '../../lib/pg/db.ts'
import { count } from '../../lib/text.ts'
import { type Finding, ofTenant, warning } from './finding.ts'
import { withoutTimeout } from './records.ts'

/** A finding for each project that has likely twins, with the command that merges the first two. */
export async function checkTwins(db: Db): Promise<Finding[]> {
  const rows = await withoutTimeout(db, TWINS)
  const findings: Finding[] = []
  for (const { project_id, one, other, people } of rows) {
    const { from, into } = (await mergeOrder(db.query, project_id!, [one!, other!]))(one!, other!)
    const n = Number(people)
    const message = `${count(n, 'person', 'people')} of project ${project_id} probably ${n === 1 ? 'has' : 'have'} several profiles, by the e-mail address or the customer: ${from} and ${into}, for example.`
    const fix = `Look at their pages. To merge two: tundish profile merge ${from} ${into} --project ${project_id}`
    findings.push(ofTenant({ project_id: project_id! }, warning('people', message, fix)))
  }
  return findings
}

const PAID_FOR = (table: string) => `
  select s.project_id, least(s.profile_id, u.profile_id), greatest(s.profile_id, u.profile_id) from ${table} u
  join sessions s on s.project_id = u.project_id and s.id = u.session_id where s.profile_id <> u.profile_id`

const TWINS = `
  with pairs (project_id, one, other) as (
    select project_id, min(id), max(id) from profiles where ${isAddress('email_folded')} and anonymized_at is null
      group by project_id, email_folded having count(*) > 1
    union ${PAID_FOR('subscriptions')}
    union ${PAID_FOR('transactions')}
    union select p.project_id, least(p.id, c.profile_id), greatest(p.id, c.profile_id) from customers c
      join profiles p on p.project_id = c.project_id and p.id = c.external_id where p.id <> c.profile_id
  ), living as (
    select pairs.* from pairs
    join profiles p on p.project_id = pairs.project_id and p.id = pairs.one and p.anonymized_at is null
    join profiles o on o.project_id = pairs.project_id and o.id = pairs.other and o.anonymized_at is null)
  select distinct on (project_id) project_id, one, other, count(*) over (partition by project_id) as people
  from living order by project_id, one, other`
