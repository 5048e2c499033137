// The reference "plain": the same answers by Fastify and pg as a good developer would write them by hand, without our checks.
import Fastify from 'fastify'
import pg from 'pg'
import { anonymize } from './plain/anonymize.ts'
import { addLists } from './plain/lists.ts'
import { addReport } from './plain/report.ts'

const TIMESTAMPTZ = 1184
const NUMERIC = 1700

// Six digits of a second, as the contract has them: a Date would lose three.
pg.types.setTypeParser(TIMESTAMPTZ, (text) => {
  const [, day, time, fraction = ''] = /^(\S+) ([0-9:]+)(?:\.(\d+))?/.exec(text)!
  return `${day}T${time}.${fraction.padEnd(6, '0')}Z`
})
pg.types.setTypeParser(NUMERIC, Number)

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 12, options: '-c TimeZone=UTC -c jit=off' })
const app = Fastify()
addLists(app, pool)
addReport(app, pool)
anonymize(app, pool)

const url = await app.listen({ host: '127.0.0.1', port: 0 })
process.stdout.write(`${url}\n`)
process.on('SIGTERM', () => process.exit(0))
