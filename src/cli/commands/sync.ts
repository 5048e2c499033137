// tundish sync: keeps a copy of a project in files or another database.
import { setTimeout as sleep } from 'node:timers/promises'
import { SingleBar } from 'cli-progress'
import { type Command, Option } from 'commander'
import pg from 'pg'
import { Tundish } from '../../../clients/js/src/client.ts'
import { TundishConnectionError, TundishError } from '../../../clients/js/src/errors.ts'
import type { Config } from '../../config.ts'
import { targetOf } from '../../data/sync/open-target.ts'
import { countChanges, type Emptied, run } from '../../data/sync/sync.ts'
import { CopyUnreachable, FORMATS, type Format, type State, type Target } from '../../data/sync/target.ts'
import { httpAddress } from '../../lib/addresses.ts'
import { DAY_S } from '../../lib/days.ts'
import { Refusal, UsageError } from '../../lib/errors.ts'
import { whyNot } from '../../lib/files.ts'
import { causeOf, isUnavailable, placeOfRefusal, sqlState } from '../../lib/pg/errors.ts'
import { abortedWhenStopped, type Result, withSettings } from './command.ts'
import { readSecret } from './secrets.ts'
import { readDuration } from './times.ts'

interface Options {
  to: string
  url?: string
  keyFile?: string
  format?: Format
  follow?: boolean
  every: string
  json?: boolean
}

const LONGEST_PAUSE_S = DAY_S

export function register(program: Command): void {
  const command = program
    .command('sync')
    .description('Keep a copy of a project in files or another database; see docs/sync.md')
    .requiredOption('--to <target>', 'A folder, sqlite:FILE, duckdb:FILE or postgres://…')
    .option('--url <url>', 'The server to copy from; by default SYNC_URL, else this machine')
    .option('--key-file <file>', "File with the project's secret key, - for standard input; by default SYNC_KEY")
    .addOption(new Option('--format <format>', 'Format of the files in a folder; by default ndjson').choices(FORMATS))
    .option('--follow', 'Continue, and copy changes until Ctrl-C')
    .option('--every <duration>', 'Pause between two runs with --follow, such as 10m; a number alone is seconds', '10')
  withSettings(command, async (config, given) => {
    const options = given as Options
    const everyMs = pauseOf(options.every)
    if (!options.follow && command.getOptionValueSource('every') === 'cli')
      process.stderr.write('--every has no effect without --follow: the sync ends after one run.\n')
    const url = addressOf(options, config)
    const tundish = new Tundish({ url, projectKey: await keyOf(options, config), fetch: openFetch(url) })
    const signal = abortedWhenStopped(interrupted('Stopped.'))
    // A copy holds personal data. Some of its files, such as DuckDB's log and Parquet, are created by libraries.
    process.umask(0o077)
    const target = await targetOf(options.to, options.format).catch((error) => {
      throw asRefusal(error, options)
    })
    try {
      await target.open()
      const copy = () => once(tundish, target, url, signal)
      if (options.follow) return await follow(target, copy, url, options, everyMs, signal)
      return resultOf(await copy(), options)
    } catch (error) {
      throw asRefusal(error, options)
    } finally {
      await target.close()
    }
  })
}

/** `fetch` that says at the first request of an outage that the client tries again, which it does for up to a minute. */
function openFetch(url: string): typeof fetch {
  let isAway = false
  return async (input, init) => {
    try {
      const response = await fetch(input, init)
      isAway = false
      return response
    } catch (error) {
      if (!isAway && !init?.signal?.aborted) process.stderr.write(`${url} cannot be reached. Trying again.\n`)
      isAway = true
      throw error
    }
  }
}

/** One run, with its progress on a terminal. */
async function once(tundish: Tundish, target: Target, url: string, signal: AbortSignal): Promise<State> {
  const state = await target.state()
  const bar = process.stderr.isTTY ? await openBar(tundish, state) : undefined
  try {
    const onProgress = (records: number) => bar?.update(records)
    const onVoid = (why: Emptied) => {
      bar?.stop()
      process.stderr.write(`${sentenceOf(why)}\n`)
    }
    return await run(tundish, target, state, { url, signal, onProgress, onVoid })
  } finally {
    bar?.stop()
  }
}

const sentenceOf = (why: Emptied) =>
  why.project === undefined
    ? `The server has lost what was written since ${why.from}, by a failover or a restore. The rows changed since then were removed, and everything is read again.`
    : `This copy was of a former project "${why.project}": the server's was created at ${why.createdAt}. All rows were removed, and everything is read again.`

async function openBar(tundish: Tundish, state: State | undefined): Promise<SingleBar> {
  const format = '{bar} {percentage}% | {value} of {total} records | {eta_formatted} left'
  const bar = new SingleBar({ format, stream: process.stderr, clearOnComplete: true, gracefulExit: false })
  bar.start(await countChanges(tundish, state?.since ?? null), state?.cursor ? state.records : 0)
  return bar
}

/** Repeats until it is stopped, also while the server or the database of the copy cannot be reached. */
async function follow(
  target: Target,
  copy: () => Promise<State>,
  url: string,
  options: Options,
  everyMs: number,
  signal: AbortSignal,
): Promise<Result> {
  let last: State | undefined
  let isOpen = true
  for (;;) {
    try {
      if (!isOpen) await target.open()
      isOpen = true
      last = await copy()
      if (last.records > 0) report(last, options)
    } catch (error) {
      if (!signal.aborted) {
        const reason = whyAway(error)
        // An address of which nothing was ever read may be wrong.
        const isUntried = isServersFault(error) && last === undefined && (await target.state())?.url !== url
        if (reason === undefined || isUntried) throw error
        isOpen = !isUnavailable(causeAt(error))
        process.stderr.write(`${reason} Trying again.\n`)
        last &&= { ...last, records: 0 }
      }
    }
    await sleep(everyMs, undefined, { signal }).catch(() => {})
    if (!signal.aborted) continue
    if (last === undefined) throw signal.reason
    return { json: resultOf(last, options).json, text: 'Stopped.' }
  }
}

const isServersFault = (error: unknown): error is Error =>
  error instanceof TundishConnectionError || (error instanceof TundishError && error.status >= 500)

// Other programs with the key use up its rate.
const isTooFast = (error: unknown): error is TundishError => error instanceof TundishError && error.status === 429

const causeAt = (error: unknown) => (error instanceof CopyUnreachable ? error.cause : error)

// Another program has the lock of the file, or the disk is full.
const PASSING_IN_SQLITE = [5, 13]

/** Undefined for an error that does not pass. */
function whyAway(error: unknown): string | undefined {
  if (isServersFault(error) || isTooFast(error)) return error.message
  if (isUnavailable(causeAt(error))) return `The database of the copy is unavailable (${causeOf(causeAt(error))}).`
  const { code, errcode = 0, message } = error as Error & { code?: string; errcode?: number }
  if (code !== 'ERR_SQLITE_ERROR' || !PASSING_IN_SQLITE.includes(errcode & 0xff)) return undefined
  return `The file of the copy cannot be used (${message}).`
}

function report(state: State, options: Options): void {
  const { json, text } = resultOf(state, options)
  process.stdout.write(`${options.json ? JSON.stringify(json) : text}\n`)
}

function resultOf({ records, since }: State, { to }: Options): Result {
  const target = withoutPassword(to)
  const stored = records === 1 ? '1 record' : `${records} records`
  return { json: { records, horizon: since, target }, text: `${stored} stored in ${target}: complete up to ${since}.` }
}

/** An address of PostgreSQL may also have the password in its query. */
const withoutPassword = (to: string) => to.replace(/\/\/[^/]*@/, '//…@').replace(/([?&]password=)[^&]*/, '$1…')

function addressOf({ url }: Options, { syncUrl, host, port }: Config): string {
  const name = url === undefined ? 'SYNC_URL' : '--url'
  const address = url ?? syncUrl ?? httpAddress(host, port)
  if (!/^https?:\/\//.test(address) || !URL.canParse(address)) {
    throw new UsageError(`${name} must be an address such as https://tundish.example.com.`)
  }
  const { username, password, search, hash, pathname } = new URL(address)
  if (username || password || search || hash)
    throw new UsageError(`${name} must not contain a user name, a password, a query (?) or a fragment (#).`)
  if (/\/public\/v1\/*$/.test(pathname)) throw new UsageError(`${name} must not contain /public/v1: it is added.`)
  return address.replace(/\/+$/, '')
}

async function keyOf({ keyFile }: Options, { syncKey }: Config): Promise<string> {
  // Every user of the machine can read the arguments of a program.
  const key = keyFile === undefined ? syncKey : await readSecret(keyFile)
  if (!key) throw new UsageError("Give the project's secret key in SYNC_KEY or with --key-file.")
  if (!/^[!-~]+\s*$/.test(key))
    throw new UsageError('The key has a character that no key has: give the whole key, as it was printed.')
  return key
}

/** A number of seconds, or a duration as other commands take it. */
function pauseOf(text: string): number {
  const value = /^[0-9]{1,8}[smhd]$/.test(text)
    ? readDuration('--every', text)
    : /^[0-9]{1,5}$/.test(text)
      ? Number(text)
      : 0
  if (value < 1 || value > LONGEST_PAUSE_S)
    throw new UsageError('--every must be a number of seconds from 1 to 86400, or a duration such as 30s, 10m or 1h.')
  return value * 1000
}

// The calls that fail for a full disk, for a folder that cannot be made, or for one with the name of a file of the copy.
const FILE_CALLS = ['mkdir', 'open', 'read', 'write', 'writev', 'fsync', 'close', 'rename']

const interrupted = (why: string) => new Refusal(`${why} The next sync continues from here.`)

function asRefusal(error: unknown, { to }: Options): unknown {
  if (error instanceof TundishError) {
    const sentence = `The server refused: ${error.message}`
    if (error.status !== 401) return new Refusal(sentence)
    return interrupted(`${sentence} The key is wrong or expired, or was revoked: give a valid one.`)
  }
  if (error instanceof TundishConnectionError) return interrupted(`The server cannot be reached (${error.message}).`)
  const { code, message, syscall, dest } = error as NodeJS.ErrnoException & { dest?: string }
  if (code === 'ERR_SQLITE_ERROR') return new Refusal(`The file of the copy cannot be used (${message}).`)
  if (isUnavailable(error)) return interrupted(`The database of the copy became unavailable (${causeOf(error)}).`)
  if (FILE_CALLS.includes(syscall ?? ''))
    return interrupted(`${dest ?? withoutPassword(to)} cannot be used: ${whyNot(error as Error)}.`)
  // Missing permissions, and tables that are not those of a copy. These messages contain names and no data.
  if (sqlState(error)?.startsWith('42')) return new Refusal(`The database of the copy cannot be used (${message}).`)
  if (error instanceof pg.DatabaseError)
    return interrupted(`The database of the copy refused a batch (${placeOfRefusal(error)}): nothing of it was stored.`)
  return error
}
