// Asks on the terminal before a command does what cannot be undone.
import { createInterface } from 'node:readline/promises'
import { Refusal, UsageError } from '../../lib/errors.ts'
import { printable } from '../../lib/text.ts'

/**
 * Shows what will happen, and returns if the answer is yes. Throws a `Refusal` for any other answer, and a `UsageError`
 * without a terminal.
 */
export async function confirm(whatHappens: string): Promise<void> {
  if (!process.stdin.isTTY)
    throw new UsageError(`${whatHappens}\nNothing was done: there is no terminal to ask on. Add --yes to do it.`)
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const answer = await terminal.question(`${printable(whatHappens)}\nDo it? (yes/no) `)
    if (!/^y(es)?$/i.test(answer.trim())) throw new Refusal('Nothing was done.')
  } catch (error) {
    throw (error as Error).name === 'AbortError' ? new Refusal('Nothing was done.') : error
  } finally {
    terminal.close()
  }
}
