// npm run test:deep failover: kills nodes under charges, reads and a copy, and judges that nothing is lost, charged twice, missed or repeated.
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { tundish } from '../support/cli.ts'
import { until } from '../support/time.ts'
import { type Clients, startClients } from './clients.ts'
import { judge, type Verdict } from './judge.ts'
import { missingPrograms, type Nodes, startNodes } from './nodes.ts'
import { type Serving, serveShop } from './shop.ts'

const { values } = parseArgs({ options: { kills: { type: 'string', default: '10' }, async: { type: 'boolean' } } })
const RECOVERY_MS = 180_000
// What is committed in this time reaches no standby, in the run without synchronous replication.
const UNSENT_MS = 1500

interface Kill {
  what: string
  outageMs: number
  primary: string
}

process.exitCode = await main()

async function main(): Promise<number> {
  const missing = missingPrograms()
  if (missing.length > 0) {
    process.stderr.write(
      `This needs ${missing.join(', ')}. On Debian, as root: apt-get install patroni etcd-server haproxy postgresql\n`,
    )
    return 2
  }
  const nodes = await startNodes({ synchronous: !values.async })
  try {
    const serving = await serveShop(nodes)
    try {
      return await (values.async ? loseCommits(nodes, serving) : killAll(nodes, serving))
    } finally {
      await serving.close()
    }
  } finally {
    nodes.stop()
  }
}

async function killAll(nodes: Nodes, serving: Serving): Promise<number> {
  const clients = startClients(serving.shop)
  const kills: Kill[] = []
  await sleep(5000)
  for (let n = 0; n < Number(values.kills); n += 1) {
    kills.push(await killOnce(nodes, clients, n % 2 === 0))
    const { what, outageMs, primary } = kills.at(-1)!
    print(`${n + 1}. ${what}: no charge for ${seconds(outageMs)}, then ${primary} is the primary`)
  }
  const verdict = await end(clients, serving, nodes)
  print(table(kills))
  printVerdict(clients, verdict)
  return verdict.broken.length > 0 ? 1 : 0
}

async function killOnce(nodes: Nodes, clients: Clients, everything: boolean): Promise<Kill> {
  const before = await nodes.primary()
  const killedMs = performance.now()
  nodes.kill(before, everything)
  await until('charges after the kill', () => charged(clients, killedMs) > 20, RECOVERY_MS)
  const endMs = performance.now()
  nodes.start(before)
  await nodes.untilWhole()
  const what = everything ? 'the node of the primary' : 'PostgreSQL of the primary'
  return { what, outageMs: clients.outageMs(killedMs, endMs), primary: await nodes.primary() }
}

/** How many charges succeeded after three seconds without one. */
function charged(clients: Clients, sinceMs: number): number {
  return clients.charges.filter(({ decidedMs }) => decidedMs !== undefined && decidedMs > sinceMs + 3000).length
}

/** Without synchronous replication: commits are lost, and that has to be noticed. */
async function loseCommits(nodes: Nodes, serving: Serving): Promise<number> {
  const clients = startClients(serving.shop)
  await sleep(10_000)
  const before = await nodes.primary()
  await nodes.holdSenders(before)
  const heldMs = performance.now()
  const heldAt = new Date().toISOString()
  await sleep(UNSENT_MS)
  nodes.kill(before, true)
  const killedMs = performance.now()
  await until('charges after the kill', () => charged(clients, killedMs) > 20, RECOVERY_MS)
  await sleep(3000)
  const unsent = clients.charges.filter(({ decidedMs = 0 }) => decidedMs > heldMs && decidedMs < killedMs)
  const { stdout } = await tundish(['doctor', '--json'], serving.env)
  const [finding] = JSON.parse(stdout).findings.filter(({ check }: { check: string }) => check === 'failover')
  const { stdout: differences } = await tundish(['reconcile', '--since', heldAt, '--json'], serving.env)
  nodes.start(before)
  const verdict = await end(clients, serving, nodes)
  const named = verdict.lostOrders.filter((id) => differences.includes(id))
  print(`Senders held at ${heldAt}; the node was killed ${UNSENT_MS} ms later.`)
  print(
    `Charges reported as paid during the run: ${unsent.length}. Orders of them that are lost: ${verdict.lostOrders.length}.`,
  )
  print(`Lost orders that reconcile names: ${named.length}.`)
  print(`The doctor: ${finding?.level}: ${finding?.message}`)
  print(`The copy was told and began anew: ${clients.copy.begunAnew} time(s).`)
  printVerdict(clients, verdict)
  // The rules of a lost order are broken by design; those of the copy must hold.
  const wrong = verdict.broken.filter((rule) => /copy|twice/.test(rule))
  const noticed =
    finding?.level === 'failed' && clients.copy.begunAnew > 0 && named.length === verdict.lostOrders.length
  return noticed && wrong.length === 0 && verdict.lostOrders.length > 0 ? 0 : 1
}

async function end(clients: Clients, serving: Serving, nodes: Nodes): Promise<Verdict> {
  await clients.stop()
  const client = new pg.Client({ connectionString: nodes.url })
  await client.connect()
  try {
    const query = async (text: string) => (await client.query(text)).rows
    await until('every charge to be decided', async () => {
      const [row] = await query(`select count(*)::int as n from orders where status = 'processing'`)
      return Number(row.n) === 0
    })
    return await judge({ clients, query, simulatorUrl: serving.simulatorUrl })
  } finally {
    await client.end()
  }
}

function table(kills: Kill[]): string {
  const rows = kills.map(
    ({ what, outageMs, primary }, n) => `| ${n + 1} | ${what} | ${seconds(outageMs)} | ${primary} |`,
  )
  return ['| kill | of | no charge for | primary afterwards |', '|---|---|---|---|', ...rows].join('\n')
}

function printVerdict(clients: Clients, { keys, succeeded, movements, broken }: Verdict): void {
  const counted = (names: string[]) =>
    [...Map.groupBy(names, (name) => name)].map(([name, all]) => `${name}: ${all.length}`)
  const outcomes = counted(clients.charges.map(({ outcome }) => outcome ?? 'undecided'))
  const responses = [...clients.statuses].sort().map(([name, n]) => `${name}: ${n}`)
  print(`${keys} keys (${outcomes.join(', ')}), ${succeeded} orders paid, ${movements} movements at the provider.`)
  print(`${clients.copy.transactions.length} rows copied. Responses: ${responses.join(', ')}.`)
  print(broken.length === 0 ? 'Nothing was lost, charged twice, missed or repeated.' : `Broken:\n${broken.join('\n')}`)
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
