// The account that PostgreSQL runs as: that of this process or, since PostgreSQL refuses to run as root, another one.
import { spawn } from 'node:child_process'
import { statSync } from 'node:fs'
import { UsageError } from '../errors.ts'

export interface Account {
  uid: number
  gid: number
}

// An account made for Tundish, then PostgreSQL's own (its name differs on macOS); `nobody` is shared with other programs,
// but exists on every machine.
const NAMES = ['tundish', 'postgres', '_postgres', 'nobody']

/** Without the caller's environment: variables such as PGDATA would change how the programs behave. */
export const ENVIRONMENT = { LC_ALL: 'C', PATH: process.env['PATH'] ?? '/usr/bin:/bin' }

export function isRoot(): boolean {
  return process.geteuid?.() === 0
}

/** The account to own a new database under `folder`, preferably the folder's owner; undefined if it is this process's. */
export async function newOwner(folder: string): Promise<Account | undefined> {
  if (!isRoot()) return undefined
  const { uid } = statSync(folder)
  for (const name of uid === 0 ? NAMES : [String(uid), ...NAMES]) {
    const account = await lookUp(name)
    if (account) return account
  }
  throw new UsageError('PostgreSQL does not run as root: add a user named "tundish", or start Tundish as another user.')
}

/** The account that has to run the server of an existing `cluster`, its owner; undefined if it is this process's. */
export function ownerOf(cluster: string): Account | undefined {
  if (!isRoot()) return undefined
  const { uid, gid } = statSync(cluster)
  if (uid !== 0) return { uid, gid }
  throw new UsageError(
    `${cluster} belongs to root, and PostgreSQL does not run as root: give it to the user that made it, with chown -R.`,
  )
}

export async function canEnter(account: Account, folder: string): Promise<boolean> {
  const { code } = await run('/bin/sh', ['-c', 'cd -- "$1"', 'sh', folder], { account })
  return code === 0
}

interface RunOptions {
  account?: Account | undefined
  input?: string
  /** Interrupts the program. */
  signal?: AbortSignal | undefined
}

/** Runs a program to its end; never throws: for a program that cannot be started, code is -1 and output the reason. */
export function run(
  program: string,
  args: string[],
  { account, input = '', signal }: RunOptions = {},
): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    // The current folder may be closed to the account.
    const child = spawn(program, args, { ...account, cwd: '/', env: ENVIRONMENT })
    const interrupt = () => void child.kill('SIGINT')
    if (signal?.aborted) interrupt()
    signal?.addEventListener('abort', interrupt, { once: true })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
    child.on('error', ({ message }) => resolve({ code: -1, output: message }))
    child.on('close', (code) => {
      signal?.removeEventListener('abort', interrupt)
      resolve({ code: code ?? -1, output })
    })
    // The program may end without reading its input.
    child.stdin.on('error', () => {})
    child.stdin.end(input)
  })
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** The account of a name or number; undefined if there is none. initdb needs an account with a name. */
async function lookUp(nameOrUid: string): Promise<Account | undefined> {
  const uid = await run('id', ['-u', nameOrUid])
  const gid = await run('id', ['-g', nameOrUid])
  if (uid.code !== 0 || gid.code !== 0) return undefined
  return { uid: Number(uid.output), gid: Number(gid.output) }
}
