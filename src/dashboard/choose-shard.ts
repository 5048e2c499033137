// The page at an address in front of several shards: their dashboards, instead of any one of them.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isForAnyShard } from '../admin/all-shards.ts'
import type { ShardDashboard } from '../config.ts'
import { ApiError } from '../lib/errors.ts'
import { type Html, html } from './html.ts'
import { sendDocument } from './send.ts'

/** A hook that responds to requests for which HAProxy has no shard. */
export const chooseShard =
  (all: readonly ShardDashboard[]) =>
  async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    if (!isForAnyShard(request) || request.routeOptions.url?.startsWith('/assets/')) return undefined
    if (request.method !== 'GET' && request.method !== 'HEAD')
      throw new ApiError(421, 'concerns_all_shards', 'Each shard has its own dashboard: nothing was done.')
    return sendDocument(request, reply, 'Shards', chooser(all))
  }

const chooser = (all: readonly ShardDashboard[]): Html => html`<body class="alone"><main id="content">
  <p class="brand"><img src="/favicon.svg" alt="" width="32" height="32">Tundish</p>
  <h1>Shards</h1>
  <p>Each shard has its own dashboard, with the organizations that are on it.</p>
  ${
    all.length > 0
      ? html`<ul>${all.map(({ name, url }) => html`<li><a href="${url}">${name}</a></li>`)}</ul>`
      : html`<p>Their addresses are shown here when <code>SHARD_DASHBOARDS</code> is set.</p>`
  }
  <p class="quiet"><a href="/docs">Reference</a> · <a href="/docs/guides">Guides</a></p>
</main></body>`
