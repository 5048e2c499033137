// Reads a file of settings, such as that of the service.
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { UsageError } from './errors.ts'
import { whyNot } from './files.ts'
import { utf8TextOf } from './text.ts'

/** The settings by name. Throws a `UsageError` that names the file. */
export function readEnvFile(file: string): NodeJS.Dict<string> {
  const text = utf8TextOf(bytesOf(file))
  // Read as it is, it would have no settings, and the command would work on another database.
  if (text === undefined) throw new UsageError(`${file} is not UTF-8: convert it to plain UTF-8 text.`)
  const line = text
    .replace(QUOTED, (lines) => lines.replace(/.+/g, 'A='))
    .split('\n')
    .findIndex((one) => !SETTING_OR_COMMENT.test(one))
  // Without its content, which may be a secret.
  if (line >= 0) throw new UsageError(`${file}: line ${line + 1} is neither NAME=value nor a comment.`)
  return parseEnv(text.replace(UNQUOTED, quoted))
}

function bytesOf(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${whyNot(error as NodeJS.ErrnoException)}.`)
  }
}

// A value in quotes may have several lines.
const QUOTED = /^[ \t]*(?:export[ \t]+)?\w+[ \t]*=[ \t]*(["'`])[\s\S]*?\1.*$/gm
const SETTING_OR_COMMENT = /^\s*(?:$|[#;]|(?:export\s+)?[\w.-]+\s*=)/
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
