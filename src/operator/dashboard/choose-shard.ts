// The page with links to the dashboards of all shards, at the address that HAProxy serves for all of them.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ShardDashboard } from '../../config.ts'
import { ApiError } from '../../lib/errors.ts'
import { isForAnyShard } from '../admin/all-shards.ts'
import { type Html, html } from './html.ts'
import { sendDocument } from './send.ts'

/** A hook that responds to requests that HAProxy sent to no particular shard. */
export const chooseShard =
  (all: readonly ShardDashboard[]) =>
  async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    if (!isForAnyShard(request) || request.routeOptions.url?.startsWith('/assets/')) return undefined
    if (request.method !== 'GET' && request.method !== 'HEAD')
      throw new ApiError(421, 'concerns_all_shards', 'Nothing was done: each shard has its own dashboard.')
    return sendDocument(request, reply, 'Shards', chooser(all))
  }

const chooser = (all: readonly ShardDashboard[]): Html => html`<body class="alone"><main id="content">
  <p class="brand"><img src="/favicon.svg" alt="" width="32" height="32">Tundish</p>
  <h1>Shards</h1>
  <p>Each shard has a dashboard for its own organizations.</p>
  ${
    all.length > 0
      ? html`<ul>${all.map(({ name, url }) => html`<li><a href="${url}">${name}</a></li>`)}</ul>`
      : html`<p>Set <code>SHARD_DASHBOARDS</code> to show links to them here.</p>`
  }
  <p class="quiet"><a href="/docs">Reference</a> · <a href="/docs/guides">Guides</a></p>
</main></body>`
