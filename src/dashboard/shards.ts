// Links to the dashboards of the other shards. Nothing of it shows on one machine.
import type { ShardDashboard } from '../config.ts'
import { html, type Piece } from './html.ts'
import type { View } from './view.ts'

const isHere = ({ url }: ShardDashboard, host: string) => new URL(url).host === host.toLowerCase()

/** All shards, the one that is shown marked. A search goes on at the other shard. */
export function shardLinks(view: View): Piece {
  const all = view.app.config.shardDashboards
  if (all.length === 0) return undefined
  // These are other hosts, which scripts may not load pages from.
  return html`<nav aria-label="Shards" hx-boost="false"><h2>Shard</h2><ul>${all.map(
    (one) =>
      html`<li><a href="${addressOn(one, view)}"${isHere(one, view.host) ? html` aria-current="true"` : ''}>${one.name}</a></li>`,
  )}</ul></nav>`
}

/** What a search that found nothing says of the other shards. */
export function searchElsewhere(view: View): Piece {
  const others = view.app.config.shardDashboards.filter((one) => !isHere(one, view.host))
  if (others.length === 0) return undefined
  return html`<p hx-boost="false">Only this shard was searched. Search on another one:</p>
    <p class="chips" hx-boost="false">${others.map((one) => html`<a href="${addressOn(one, view)}">${one.name}</a> `)}</p>`
}

function addressOn({ url }: ShardDashboard, { path, query }: View): string {
  const q = path === '/people' ? query.get('q') : null
  const address = new URL(q ? '/people' : '/', url)
  if (q) address.searchParams.set('q', q)
  return address.href
}
