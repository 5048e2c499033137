// Reads secrets for a command from a file, a pipe, or a terminal that does not show them. They are never arguments.
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { Refusal } from '../../lib/errors.ts'
import { readTextFile } from './text-file.ts'

/** The lines of the file, of standard input (also `-`), or the answers to these questions at a terminal; none is empty. */
export async function readSecrets(file: string | undefined, questions: string[]): Promise<string[]> {
  const lines = await linesFrom(file, questions)
  const secrets = lines.map((line) => line.trim()).filter((line) => line !== '')
  if (secrets.length === 0) throw new Refusal('No secret was given.')
  return secrets
}

/** The only secret of the file, or of standard input (`-`); undefined if there are several. */
export async function readSecret(file: string): Promise<string | undefined> {
  const [secret, ...more] = await readSecrets(file, [])
  return more.length > 0 ? undefined : secret
}

async function linesFrom(file: string | undefined, questions: string[]): Promise<string[]> {
  if (file !== undefined && file !== '-') return (await readTextFile(file)).split('\n')
  if (file === undefined && process.stdin.isTTY) return askHidden(questions)
  return (await text(process.stdin)).split('\n')
}

/** The terminal shows the questions on standard error, and not what is typed. */
async function askHidden(questions: string[]): Promise<string[]> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const terminal = createInterface({ input: process.stdin, output: nowhere, terminal: true })
  const answers: string[] = []
  try {
    for (const question of questions) {
      process.stderr.write(`${question}: `)
      answers.push(await terminal.question('').catch(throwAsRefusal).finally(endLine))
    }
  } finally {
    terminal.close()
  }
  return answers
}

const endLine = () => void process.stderr.write('\n')

/** Ctrl-C and Ctrl-D reach the question, not the process, because the terminal passes every key on. */
function throwAsRefusal(error: Error): never {
  throw error.name === 'AbortError' ? new Refusal('Stopped: no secret was entered.') : error
}
