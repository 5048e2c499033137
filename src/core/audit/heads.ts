// The file of the audit log's heads, outside the database: two lines for each entry, announced and committed.
import { readFile } from 'node:fs/promises'
import { Refusal } from '../../lib/errors.ts'
import { appendLines, whyNot } from '../../lib/files.ts'

export interface Head {
  sequence: string
  /** In hex. */
  hash: string
}

/** Several heads may be announced under one number; at most one of them was committed. */
export interface KnownHead {
  hash: string
  committed: boolean
}

/** Adds a line and waits until it is on disk. Short lines are appended whole, also by several processes. */
export const appendHead = (path: string, head: Head & { committed: boolean }) =>
  appendLines(path, `${JSON.stringify(head)}\n`)

/** The heads in the file, by number; a missing file has none. */
export async function readHeads(path: string): Promise<Map<string, KnownHead>> {
  const text = await readFile(path, 'utf8').catch((error) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return ''
    throw new Refusal(`${path} cannot be read: ${whyNot(error)}.`)
  })
  const heads = new Map<string, KnownHead>()
  for (const line of text.split('\n')) {
    // A line that a crash cut off is skipped.
    const [, sequence, hash, committed] = LINE.exec(line) ?? []
    if (sequence === undefined) continue
    if (committed === 'true') heads.set(sequence, { hash: hash!, committed: true })
    else if (!heads.get(sequence)?.committed) heads.set(sequence, { hash: hash!, committed: false })
  }
  return heads
}

const LINE = /^\{"sequence":"([0-9]+)","hash":"([0-9a-f]{64})","committed":(true|false)\}$/
