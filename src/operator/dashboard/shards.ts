// Links to the dashboards of the other shards; none are shown without `SHARD_DASHBOARDS`.
import type { ShardDashboard } from '../../config.ts'
import { html, type Piece } from './html.ts'
import type { View } from './view.ts'

const isHere = ({ url }: ShardDashboard, host: string) => new URL(url).host === host.toLowerCase()

/** Links to all shards, the current one marked. On a page of search results they repeat the search there. */
export function shardLinks(view: View): Piece {
  const all = view.app.config.shardDashboards
  if (all.length === 0) return undefined
  // No htmx: the Content-Security-Policy forbids scripts to load pages from other hosts.
  return html`<nav aria-label="Shards" hx-boost="false"><h2>Shard</h2><ul>${all.map(
    (one) =>
      html`<li><a href="${addressOn(one, view)}"${isHere(one, view.host) ? html` aria-current="true"` : ''}>${one.name}</a></li>`,
  )}</ul></nav>`
}

/** Links that repeat a search without results on the other shards. */
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
