// tundish shards: several databases, each with whole organizations, behind one HAProxy.
import type { Command } from 'commander'
import { addEntry, type Entry } from '../../core/audit/audit.ts'
import { UsageError } from '../../lib/errors.ts'
import { openLog } from '../../lib/log.ts'
import type { Difference } from '../../operations/shards/difference.ts'
import { follow, readDirectory } from '../../operations/shards/follow.ts'
import { type Broken, giveUpBroken, giveUpWithout } from '../../operations/shards/give-up.ts'
import { whyNotLoaded, writeMaps } from '../../operations/shards/haproxy.ts'
import { documentOf, merge } from '../../operations/shards/merge.ts'
import { move } from '../../operations/shards/move.ts'
import { type Ran, runOn } from '../../operations/shards/on-each.ts'
import { count, removeCopy } from '../../operations/shards/remove.ts'
import { readShards, type Shard, shardNamed } from '../../operations/shards/shard.ts'
import { operationsOf } from '../../operator/admin/groups.ts'
import { isReading } from '../../operator/admin/operation.ts'
import { abortedWhenStopped, type Result, withApp, withSettings } from './command.ts'
import { commandLine } from './operations.ts'
import { NOTHING, table } from './text.ts'

export function register(program: Command): void {
  const group = program
    .command('shards')
    .description('Operate several databases, each with complete organizations; see docs/growing.md')
  const command = (words: string, description: string) =>
    group
      .command(words)
      .description(description)
      .requiredOption('--in <folder>', 'Folder with the settings of each shard, NAME.env')
  registerDirectory(command('directory', 'Write the maps by which HAProxy finds the shard of a request'))
  registerRun(command('run <words...>', 'Run a command on every shard, such as: run --in FOLDER -- doctor'))
  registerMove(command('move <organization>', 'Move an organization to another shard while it is served'))
  registerRemove(command('remove <organization>', 'Remove one of two copies of an organization, as after a restore'))
}

function registerDirectory(command: Command): void {
  command
    .requiredOption('--to <folder>', 'Folder from which HAProxy reads the maps')
    .option('--haproxy <socket...>', 'Also load them into the HAProxy with this socket: a path, or host:port')
    .option('--follow', 'Continue, and write changes')
  withSettings(command, async (config, given) => {
    const options = given as { in: string; to: string; haproxy?: string[]; follow?: boolean }
    const shards = readShards(options.in)
    if (!options.follow) return writeDirectory(shards, options.to, options.haproxy ?? [])
    const log = openLog(config.logLevel)
    await follow({ shards, folder: options.to, sockets: options.haproxy ?? [], log, signal: abortedWhenStopped() })
    return { json: {}, text: '' }
  })
}

async function writeDirectory(shards: readonly Shard[], folder: string, sockets: readonly string[]): Promise<Result> {
  const directory = await readDirectory(shards, folder)
  writeMaps(folder, directory)
  const { organizations, projects, keys, conflicts, unreachable } = directory
  const loads = await Promise.all(sockets.map((socket) => whyNotLoaded(socket, folder, directory)))
  const notLoaded = loads.filter((why) => why !== undefined)
  const sizes = { organizations: organizations.size, projects: projects.size, keys: keys.size }
  const text = `${sizes.organizations} organizations, ${sizes.projects} projects and ${sizes.keys} keys on ${shards.length} shards.`
  const problems = [...conflicts, ...unreachable, ...notLoaded]
  const json = { shards: shards.length, ...sizes, conflicts, unreachable, not_loaded: notLoaded }
  return { json, text: [text, ...problems].join('\n'), exitCode: problems.length && 1 }
}

function registerRun(command: Command): void {
  command.option('--merge', 'Print the lists of all shards as one, with a column "shard"')
  withSettings(command, async (_config, ...given) => {
    const [words, { in: folder, json, merge: isMerged }] = given as [string[], RunOptions]
    const ran: Ran[] = []
    for (const shard of readShards(folder)) {
      const one = await runOn(shard, json || isMerged ? [...words, '--json'] : words)
      ran.push(one)
      if (!json && !isMerged) process.stdout.write(`${shard.name}:\n${one.output}`)
    }
    const exitCode = Math.max(...ran.map((one) => one.exitCode))
    if (isMerged) return { ...(await describeMerged(ran, words)), exitCode }
    return { json: json && ran.map(asJson), text: '', exitCode }
  })
}

interface RunOptions {
  in: string
  json?: boolean
  merge?: boolean
}

const asJson = (ran: Ran) => ({ shard: ran.shard, exit_code: ran.exitCode, output: documentOf(ran) ?? null })

/** One list of all shards. Failures and further pages are reported on standard error. */
async function describeMerged(ran: Ran[], words: readonly string[]): Promise<Result> {
  const { rows, further } = merge(ran)
  const failed = ran.filter(({ exitCode, output }) => exitCode !== 0 && output.trim() === '')
  for (const { shard, exitCode } of failed) process.stderr.write(`${shard}: ended with ${exitCode}.\n`)
  for (const [shard, cursor] of further) process.stderr.write(`There are more on ${shard}: --cursor ${cursor}\n`)
  if (rows.length === 0) return { json: rows, text: NOTHING }
  const columns = (await columnsOf(words)) ?? rows.flatMap((row) => Object.keys(row))
  return { json: rows, text: table(rows, [...new Set(['shard', ...columns])]) }
}

/** The columns of the command's own table, if it is a list of the operator's API. */
async function columnsOf(words: readonly string[]): Promise<readonly string[] | undefined> {
  const operations = await operationsOf(words[0]!)
  const own = operations.find(({ command }) => command.split(' ').every((word, n) => word === words[n]))
  return own && isReading(own) ? own.columns : undefined
}

function registerMove(command: Command): void {
  command
    .requiredOption('--from <shard>', 'The shard that has it')
    .requiredOption('--to <shard>', 'The shard that gets it')
    .option('--give-up', 'Give up an interrupted move: the old shard serves the organization again')
    .option('--target-is-gone', 'With --give-up: the new shard will never respond again')
  withSettings(command, async (_config, ...given) => {
    const [organization, options] = given as [string, MoveOptions]
    if (options.targetIsGone && !options.giveUp) throw new UsageError('--target-is-gone is for --give-up.')
    const shards = readShards(options.in)
    const from = shardNamed(shards, options.from)
    const to = shardNamed(shards, options.to)
    if (from === to) throw new UsageError('--from and --to are the same shard.')
    const between = { organization, from, to }
    return options.giveUp ? giveUp(between, options.targetIsGone) : moveAll(between, options.json)
  })
}

interface MoveOptions {
  in: string
  from: string
  to: string
  giveUp?: boolean
  targetIsGone?: boolean
  json?: boolean
}

async function moveAll({ organization, from, to }: Broken, json: boolean | undefined): Promise<Result> {
  const say = (step: string) => void (json || process.stderr.write(`${step}\n`))
  const { rows, refusedMs } = await move({ organization, from, to, say })
  const target = `organization ${organization}`
  await addEntryOn(from, { action: 'organization.moved_out', target, after: { to: to.name, rows } })
  await addEntryOn(to, { action: 'organization.moved_in', target, after: { from: from.name, rows } })
  const seconds = (refusedMs / 1000).toFixed(1)
  return {
    json: { organization, from: from.name, to: to.name, rows, refused_ms: Math.round(refusedMs) },
    text: `"${organization}" is on ${to.name}, with ${rows.toLocaleString('en')} rows. Its requests were refused for ${seconds} s.`,
  }
}

async function giveUp(broken: Broken, targetIsGone = false): Promise<Result> {
  const { organization, from, to } = broken
  await (targetIsGone ? giveUpWithout(broken) : giveUpBroken(broken))
  const after = { to: to.name, target_is_gone: targetIsGone }
  await addEntryOn(from, { action: 'organization.move_given_up', target: `organization ${organization}`, after })
  return {
    json: { organization, from: from.name, to: to.name, given_up: true },
    text: `The move of "${organization}" to ${to.name} is given up: ${from.name} serves it.`,
  }
}

function registerRemove(command: Command): void {
  command
    .requiredOption('--from <shard>', 'The shard whose copy is removed')
    .option('--yes', 'Remove it; without this option, only print what differs')
    .option('--lose-charges', 'Also if the other copy lacks charges or refunds of this one')
  withSettings(command, async (_config, ...given) => {
    const [organization, options] = given as [
      string,
      { in: string; from: string; yes?: boolean; loseCharges?: boolean },
    ]
    const shards = readShards(options.in)
    const from = shardNamed(shards, options.from)
    const { keptOn, difference, isRemoved } = await removeCopy({
      organization,
      from,
      others: shards.filter((shard) => shard !== from),
      isSure: options.yes === true,
      losesCharges: options.loseCharges === true,
    })
    const target = `organization ${organization}`
    const facts = factsOf(difference)
    if (isRemoved) {
      await addEntryOn(from, { action: 'organization.copy_removed', target, after: { kept_on: keptOn.name, ...facts } })
      await addEntryOn(keptOn, {
        action: 'organization.copy_kept',
        target,
        after: { removed_from: from.name, ...facts },
      })
    }
    const end = isRemoved
      ? `The copy on ${from.name} is removed: "${organization}" is on ${keptOn.name}.`
      : `Nothing was removed. To remove the copy on ${from.name}, add --yes.`
    return {
      json: { organization, from: from.name, kept_on: keptOn.name, removed: isRemoved, ...facts },
      text: [...linesOf(difference, from, keptOn), end].join('\n'),
      exitCode: isRemoved ? 0 : 1,
    }
  })
}

function factsOf({ copy, other, tables, orders, charges, refunds, erasures }: Difference) {
  return {
    rows: copy.rows,
    newest_change: copy.newestChange,
    others_rows: other.rows,
    others_newest_change: other.newestChange,
    tables: Object.fromEntries(tables.map(({ table, rows, others }) => [table, [rows, others]])),
    missing_orders: orders.count,
    missing_order_ids: orders.ids,
    missing_charges: charges,
    missing_refunds: refunds,
    missing_erasures: erasures,
  }
}

function linesOf(difference: Difference, from: Shard, keptOn: Shard): string[] {
  const { copy, other, tables, orders, charges, refunds, erasures } = difference
  const about = (shard: Shard, { rows, newestChange }: Difference['copy']) =>
    `${shard.name}: ${count(rows, 'row', 'rows')}, newest change ${newestChange ?? 'none'}.`
  const differing = tables.map(({ table, rows, others }) => `${table} ${rows} (${keptOn.name}: ${others})`)
  const ids = orders.ids.length > 0 ? `: ${orders.ids.join(', ')}${orders.count > orders.ids.length ? ', …' : ''}` : ''
  return [
    about(from, copy),
    about(keptOn, other),
    ...(differing.length > 0 ? [`Numbers of rows on ${from.name} that differ: ${differing.join(', ')}.`] : []),
    `${keptOn.name} lacks ${count(orders.count, 'order', 'orders')}${ids}.`,
    `Made or possibly made, and missing on ${keptOn.name}: ${count(charges, 'charge', 'charges')}, ${count(refunds, 'refund', 'refunds')}. Erased on ${from.name} only: ${count(erasures, 'person', 'people')}.`,
  ]
}

/** Adds an entry to the audit log of a shard. */
const addEntryOn = ({ config }: Shard, entry: Entry): Promise<void> =>
  withApp(config, (app) => addEntry(app, commandLine(), entry))
