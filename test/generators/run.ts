// What each generator is tried with: a server with data, its description in a file, and a folder to generate into.
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { BASICS, insert } from '../support/data.ts'
import { startTestServer } from '../support/server.ts'

export interface Trial {
  url: string
  key: string
  /** The description of the public listener. */
  document: string
  folder: string
  stop(): Promise<void>
}

export interface Outcome {
  generator: string
  version: string
  /** Lines that warn of the description, or what went wrong. */
  warnings: string[]
  /** What the generated client read from the server: the same for every generator. */
  read: unknown
}

/** What every generated client has to read: a multi-select reply, and money as a whole number. */
export const EXPECTED = { value: ['a', 'b'], price: 999_999_999_999, email: 'ada@example.com' }

export async function openTrial(): Promise<Trial> {
  // Clients that keep headers in a `Headers` object send their names in lower case.
  const server = await startTestServer({ SECRET_HEADER_CASE: 'any' })
  const project = await server.project()
  await insert(server.db, project, {
    ...BASICS,
    profiles: [{ id: 'profile', email: EXPECTED.email }],
    replies: [{ session_id: 'session', value: EXPECTED.value }],
    subscriptions: [{ id: 'subscription', price: EXPECTED.price }],
  })
  const folder = mkdtempSync(join(tmpdir(), 'tundish-generators-'))
  const document = join(folder, 'openapi.json')
  writeFileSync(document, (await server.call('/openapi.json')).text)
  return {
    url: server.url,
    key: project.key,
    document,
    folder,
    async stop() {
      await server.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export class CommandFailed extends Error {}

/** Runs a program and returns what it printed; throws with it when the program fails. */
export function run(command: string, args: string[], options: { cwd: string; env?: object }): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk) => {
        output += chunk
      })
    }
    child.on('error', reject)
    child.on('close', (code) => {
      if (code === 0) resolve(output)
      else reject(new CommandFailed(`${command} ${args.join(' ')} ended with ${code}:\n${output}`))
    })
  })
}

export function write(folder: string, files: Record<string, string>): void {
  mkdirSync(folder, { recursive: true })
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
}

/** The last line that a program printed, as JSON. */
export function lastJson(output: string): unknown {
  return JSON.parse(output.trim().split('\n').at(-1)!)
}
