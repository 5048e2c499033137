// Reads ledgers of erasure from files, one JSON object a line.
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { Refusal } from '../../lib/errors.ts'
import { whyNot } from '../../lib/files.ts'
import { isJsonObject, JsonError, readJson } from '../../lib/json/read.ts'
import { readInstant, TimeError } from '../../lib/time.ts'
import type { Erasure } from './ledger.ts'

/** Continues after an unreadable line, which a crash may have cut off: all others must be erased. */
export async function* readLedgers(paths: string[], unreadable: string[]): AsyncIterable<Erasure> {
  for (const path of paths) {
    let line = 0
    for await (const text of linesOf(path)) {
      line += 1
      if (text === '') continue
      try {
        yield readErasure(text)
      } catch (error) {
        if (!(error instanceof JsonError || error instanceof TimeError)) throw error
        unreadable.push(`${path}:${line}: ${error.message}.`)
      }
    }
  }
}

async function* linesOf(path: string): AsyncIterable<string> {
  try {
    yield* createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })
  } catch (error) {
    throw new Refusal(`${path} cannot be read: ${whyNot(error as NodeJS.ErrnoException)}.`)
  }
}

function readErasure(text: string): Erasure {
  const value = readJson(text)
  if (!isJsonObject(value)) throw new JsonError('an object is required')
  const { project_id, profile_id, erased_at } = value
  if (typeof project_id !== 'string' || typeof profile_id !== 'string' || typeof erased_at !== 'string') {
    throw new JsonError('project_id, profile_id and erased_at are required')
  }
  return { project_id, profile_id, erased_at: readInstant(erased_at) }
}
