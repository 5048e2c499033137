// An append-only file of JSON lines; many writers share one fsync.
import { constants, ftruncateSync, writeSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { UsageError } from '../lib/errors.ts'
import { naming, openToAppend } from '../lib/files.ts'

export class Journal {
  readonly #file: FileHandle
  readonly #path: string
  /** Of what was written whole: a failed write may have left a part of its lines after it. */
  #size: number
  #lines: string[] = []
  #lastWrite: Promise<void> = Promise.resolve()
  #nextWrite: Promise<void> | null = null

  private constructor(file: FileHandle, path: string, size: number) {
    this.#file = file
    this.#path = path
    this.#size = size
  }

  /**
   * Opens the file, which is made if it is missing, and passes each line to `apply`. A last line that a crash cut short
   * is removed: no response was sent for it. Any other line that cannot be read is an error. With `fsync` a line survives a
   * crash of the machine once it is written.
   */
  static async open(path: string, fsync: boolean, apply: (line: unknown) => void): Promise<Journal> {
    // With O_DSYNC a write returns when it is on disk: one system call instead of two.
    const file = await openToAppend(path, fsync ? constants.O_DSYNC : 0)
    try {
      const whole = await replay(file, path, apply)
      if (whole < (await file.stat()).size) await file.truncate(whole)
      return new Journal(file, path, whole)
    } catch (error) {
      await file.close()
      throw error
    }
  }

  /** Adds a line; it is on disk when a later `durable()` resolves. */
  append(line: object): void {
    this.#lines.push(`${JSON.stringify(line)}\n`)
  }

  /**
   * Resolves when every line added so far is on disk. It rejects as long as they cannot be written, as on a full disk: the
   * memory is then ahead of the disk, and no caller may see it.
   */
  durable(): Promise<void> {
    if (this.#lines.length === 0) return this.#lastWrite
    // The lines wait for the current write and are then written together, with those of a write that failed.
    this.#nextWrite ??= this.#lastWrite = this.#lastWrite.catch(() => {}).then(() => this.#write())
    return this.#nextWrite
  }

  async close(): Promise<void> {
    await this.durable().finally(() => this.#file.close())
  }

  async #write(): Promise<void> {
    // Requests that have already arrived are read first and share the write.
    await new Promise((resolve) => setImmediate(resolve))
    const lines = this.#lines.splice(0)
    this.#nextWrite = null
    await naming(this.#path, async () => this.#append(Buffer.from(lines.join('')))).catch((error) => {
      this.#lines = [...lines, ...this.#lines]
      throw error
    })
  }

  #append(bytes: Buffer): void {
    const { fd } = this.#file
    try {
      // No response is sent before its line is on disk, so blocking costs nothing; a thread would cost more than the write.
      for (let written = 0; written < bytes.length; ) written += writeSync(fd, bytes, written)
    } catch (error) {
      ftruncateSync(fd, this.#size)
      throw error
    }
    this.#size += bytes.length
  }
}

/** @returns the size of the part that consists of whole lines */
async function replay(file: FileHandle, path: string, apply: (line: unknown) => void): Promise<number> {
  let size = 0
  let number = 0
  let rest = Buffer.alloc(0)
  for await (const chunk of file.createReadStream({ start: 0, autoClose: false }) as AsyncIterable<Buffer>) {
    const bytes = Buffer.concat([rest, chunk])
    let from = 0
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, from)) {
      number++
      applyLine(bytes.toString('utf8', from, end), `${path}:${number}`, apply)
      from = end + 1
    }
    size += from
    rest = bytes.subarray(from)
  }
  return size
}

function applyLine(text: string, place: string, apply: (line: unknown) => void): void {
  try {
    apply(JSON.parse(text))
  } catch (error) {
    throw new UsageError(`${place} cannot be read, restore the file from a backup: ${(error as Error).message}`)
  }
}
