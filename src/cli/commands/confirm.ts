// Asks for confirmation before a command does what cannot be undone.
import { createInterface } from 'node:readline/promises'
import type { Command } from 'commander'
import { Refusal, UsageError } from '../../lib/errors.ts'
import { printable } from '../../lib/text.ts'

/** Adds `--yes` to a command that calls `confirm`. */
export const addYes = (command: Command): Command =>
  command.option('--yes', 'Do not ask for confirmation; required without a terminal')

/**
 * Shows what will happen and asks at the terminal, unless `yes` is set. Without a terminal it refuses, before anything is
 * looked up. The question is on standard error, so that standard output has the result alone.
 */
export async function confirm(yes: boolean | undefined, describe: () => Promise<string>): Promise<void> {
  if (yes === true) return
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new UsageError('This cannot be undone, and there is no terminal to ask for confirmation: add --yes.')
  const sentences = await describe()
  process.stderr.write(`${printable(sentences)}\nThis cannot be undone.\n`)
  const reply = await ask('Type "yes" to go on: ').catch(throwAsRefusal)
  if (reply.trim().toLowerCase() !== 'yes') throw nothingDone()
}

/** What is typed at the terminal after a question. */
export async function ask(question: string): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return await terminal.question(question)
  } finally {
    terminal.close()
  }
}

const nothingDone = () => new Refusal('Not confirmed: nothing was changed.')

/** Ctrl-C and Ctrl-D reach the question, not the process. */
function throwAsRefusal(error: Error): never {
  if (error.name !== 'AbortError') throw error
  process.stderr.write('\n')
  throw nothingDone()
}
