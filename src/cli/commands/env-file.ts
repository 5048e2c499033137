// The option --env-file: settings from a file such as that of the service, for commands that are run by hand.
import { readFileSync } from 'node:fs'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { readEnvFile } from '../../lib/env-file.ts'
import { UsageError } from '../../lib/errors.ts'

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
  addMissing(readEnvFile(file), process.env)
}

// Node reads it before the program starts, so too early for a file of settings.
const AUTHORITIES = 'NODE_EXTRA_CA_CERTS'

function trust(file: string): void {
  try {
    setDefaultCACertificates([...getCACertificates(), readFileSync(file, 'utf8')])
  } catch (error) {
    // As Node itself does: most commands connect to no such server.
    process.emitWarning(`${AUTHORITIES} is ignored: ${file} cannot be used (${(error as Error).message}).`)
  }
}

function addMissing(settings: NodeJS.Dict<string>, env: NodeJS.ProcessEnv): void {
  const authorities = settings[AUTHORITIES]
  if (authorities && env[AUTHORITIES] === undefined) trust(authorities)
  for (const [name, value] of Object.entries(settings)) env[name] ??= value
}
