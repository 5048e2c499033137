// Settings from files: NAME_FILE names a file with the value of NAME, as containers mount secrets.
import { readFileSync } from 'node:fs'
import { whyNot } from './files.ts'
import { utf8TextOf } from './text.ts'

const MAX_BYTES = 64 * 1024

/**
 * Returns a reader of settings: the value of `NAME`, or else the content of the file that `NAME_FILE` names, without the line break at
 * its end. An empty value counts as not set. `mistakes` receives a sentence for each file that cannot be read; no value is repeated.
 */
export function settingReader(env: NodeJS.ProcessEnv, mistakes: string[]): (name: string) => string | undefined {
  const read = new Map<string, string | undefined>()
  return (name) => {
    if (!read.has(name)) read.set(name, settingOf(env, name, mistakes))
    return read.get(name)
  }
}

/** Whether one of these mistakes is about the file of the setting, which is then not missing. */
export const hasUnreadFile = (name: string, mistakes: readonly string[]): boolean =>
  mistakes.some((mistake) => mistake.startsWith(`${name}_FILE `))

function settingOf(env: NodeJS.ProcessEnv, name: string, mistakes: string[]): string | undefined {
  const value = env[name] || undefined
  const file = env[`${name}_FILE`] || undefined
  if (file === undefined) return value
  if (value !== undefined) {
    mistakes.push(`${name} and ${name}_FILE are both set: unset one of them.`)
    return value
  }
  try {
    const content = readFileSync(file)
    if (content.length > MAX_BYTES) {
      mistakes.push(`${name}_FILE names a file of more than ${MAX_BYTES / 1024} KiB: ${file}.`)
      return undefined
    }
    const text = utf8TextOf(content)
    if (text !== undefined) return text.replace(/\r?\n$/, '') || undefined
    mistakes.push(`${name}_FILE names a file that is not UTF-8: ${file}.`)
  } catch (error) {
    mistakes.push(`${name}_FILE cannot be read: ${file}: ${whyNot(error as NodeJS.ErrnoException)}.`)
  }
  return undefined
}
