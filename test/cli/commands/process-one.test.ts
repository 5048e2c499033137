// A server that runs as process 1 says that it needs an init.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import { PROGRAM_ENV, program } from '../../support/cli.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { titled } from '../../support/titled.ts'

const NAMESPACE = ['--fork', '--pid', '--kill-child']
const noNamespaces =
  spawnSync('unshare', [...NAMESPACE, 'true']).status === 0
    ? undefined
    : 'this user may not make a namespace of processes'

const KEY = randomBytes(32).toString('base64')

const database = await freshDatabase()
const folder = temporaryFolder()
after(() => database.drop())

/** The messages that `tundish worker` logs until it works. */
async function messagesOf(...before: string[]): Promise<string[]> {
  const settings = { LOG_LEVEL: 'info', DATABASE_URL: database.url, DATA_DIR: folder, MASTER_KEY: KEY }
  const env = { ...PROGRAM_ENV, ...settings }
  const [node, args] = program('worker')
  const [first, ...rest] = [...before, node, ...args]
  const child = spawn(first!, rest, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const messages: string[] = []
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      messages.push(JSON.parse(line).msg)
      if (messages.at(-1)!.includes('has begun')) break
    }
  } finally {
    child.kill('SIGKILL')
  }
  return messages
}

test(titled('a warning as process 1, and none as another process', noNamespaces), {
  skip: noNamespaces !== undefined,
}, async () => {
  const warns = (messages: string[]) => messages.some((message) => message.startsWith('Tundish runs as process 1'))
  const inside = await messagesOf('unshare', ...NAMESPACE)
  assert.ok(warns(inside), inside.join('\n'))
  const outside = await messagesOf()
  assert.ok(outside.length > 0 && !warns(outside), outside.join('\n'))
})
