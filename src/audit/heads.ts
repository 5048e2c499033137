// The file that knows the audit log's entries from outside the database: a line for each, announced and then committed.
import { readFile } from 'node:fs/promises'
import { openToAppend } from '../lib/files.ts'

export interface Head {
  sequence: string
  /** In hex. */
  hash: string
}

/** Of several that were announced under one number at most one was committed. */
export interface KnownHead {
  hash: string
  committed: boolean
}

/** Adds a line and waits until it is on disk. Short lines are appended whole, also by several processes. */
export async function appendHead(path: string, head: Head & { committed: boolean }): Promise<void> {
  const file = await openToAppend(path)
  try {
    await file.appendFile(`${JSON.stringify(head)}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** What the file knows of each entry, by number; a file that is not there knows nothing. */
export async function readHeads(path: string): Promise<Map<string, KnownHead>> {
  const text = await readFile(path, 'utf8').catch((error) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return ''
    throw error
  })
  const heads = new Map<string, KnownHead>()
  for (const line of text.split('\n')) {
    // A line that a crash cut off says nothing.
    const [, sequence, hash, committed] = LINE.exec(line) ?? []
    if (sequence === undefined) continue
    if (committed === 'true') heads.set(sequence, { hash: hash!, committed: true })
    else if (!heads.get(sequence)?.committed) heads.set(sequence, { hash: hash!, committed: false })
  }
  return heads
}

const LINE = /^\{"sequence":"([0-9]+)","hash":"([0-9a-f]{64})","committed":(true|false)\}$/
