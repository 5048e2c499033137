// The version of this program.
import { readFileSync } from 'node:fs'

export function tundishVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
