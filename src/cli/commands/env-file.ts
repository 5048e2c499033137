// The option --env-file: settings from a file such as that of the service, for commands that are run by hand.
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { UsageError } from '../../lib/errors.ts'
import { whyNot } from '../../lib/files.ts'

const OPTION = '--env-file'

/** Loads the files that `--env-file FILE` names anywhere among `words`, and returns the other words. */
export function takeEnvFile(words: string[]): string[] {
  const rest: string[] = []
  for (let n = 0; n < words.length; n++) {
    const word = words[n]!
    if (word === '--') return [...rest, ...words.slice(n)]
    if (word === OPTION) load(words[++n])
    else if (word.startsWith(`${OPTION}=`)) load(word.slice(OPTION.length + 1))
    else rest.push(word)
  }
  return rest
}

function load(file: string | undefined): void {
  if (!file) throw new UsageError(`${OPTION} needs the name of a file.`)
  try {
    const settings = parseEnv(readFileSync(file, 'utf8').replace(UNQUOTED, quoted))
    addMissing(settings, process.env)
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${whyNot(error as NodeJS.ErrnoException)}.`)
  }
}

function addMissing(settings: NodeJS.Dict<string>, env: NodeJS.ProcessEnv): void {
  for (const [name, value] of Object.entries(settings)) env[name] ??= value
}

// A line with a value that does not begin with a quote.
const UNQUOTED = /^([ \t]*(?:export[ \t]+)?\w+[ \t]*=[ \t]*)([^\s'"`#].*)$/gm

/**
 * A "#" within a word, as in a password, belongs to the value: so systemd reads the same file for the service, but Node
 * takes it for the beginning of a comment.
 */
function quoted(line: string, name: string, text: string): string {
  const value = text.replace(/\s+(#.*)?$/, '')
  const quote = ["'", '"', '`'].find((one) => !value.includes(one))
  return value.includes('#') && quote ? `${name}${quote}${value}${quote}` : line
}
