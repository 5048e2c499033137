// The reference "plain": the same responses from Fastify and pg, tuned by hand, without our checks, with as many processes as ours.
import cluster from 'node:cluster'
import Fastify from 'fastify'
import pg from 'pg'
import { anonymize } from './plain/anonymize.ts'
import { addLists } from './plain/lists.ts'
import { addRecords } from './plain/records.ts'
import { addReport } from './plain/report.ts'

const TIMESTAMPTZ = 1184
const NUMERIC = 1700
const CONNECTIONS = 12

const workers = Number(process.env.WORKERS ?? 1)
process.on('SIGTERM', () => process.exit(0))
if (cluster.isPrimary && workers > 1) {
  for (let n = 0; n < workers; n += 1) cluster.fork()
  let listening = 0
  cluster.on('listening', (_worker, { port }) => {
    listening += 1
    if (listening === workers) process.stdout.write(`http://127.0.0.1:${port}\n`)
  })
} else await serve()

async function serve(): Promise<void> {
  // The API has six digits of a second; a Date would lose three.
  pg.types.setTypeParser(TIMESTAMPTZ, (text) => {
    const [, day, time, fraction = ''] = /^(\S+) ([0-9:]+)(?:\.(\d+))?/.exec(text)!
    return `${day}T${time}.${fraction.padEnd(6, '0')}Z`
  })
  pg.types.setTypeParser(NUMERIC, Number)
  const pools = { planned: openPool('force_generic_plan'), byValue: openPool('auto') }
  const app = Fastify()
  addLists(app, pools)
  addReport(app, pools.byValue)
  anonymize(app, pools.byValue)
  addRecords(app, pools.planned)
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  if (cluster.isPrimary) process.stdout.write(`${url}\n`)
}

function openPool(plans: 'auto' | 'force_generic_plan'): pg.Pool {
  const options = `-c TimeZone=UTC -c jit=off -c plan_cache_mode=${plans}`
  return new pg.Pool({ connectionString: process.env.DATABASE_URL, max: CONNECTIONS, options })
}
