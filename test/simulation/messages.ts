// The messages of PostgreSQL's wire protocol that the simulation has to distinguish.

/** One message: its type and all of its bytes. */
export interface Message {
  type: string
  bytes: Buffer
}

/** Splits a stream of bytes into messages. */
export class MessageReader {
  #rest: Buffer = Buffer.alloc(0)

  /** Adds bytes, and returns the messages that are now complete. */
  read(bytes: Buffer): Message[] {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    const messages: Message[] = []
    while (this.#rest.length >= 5) {
      const length = 1 + this.#rest.readInt32BE(1)
      if (this.#rest.length < length) break
      messages.push({ type: String.fromCharCode(this.#rest[0]!), bytes: this.#rest.subarray(0, length) })
      this.#rest = this.#rest.subarray(length)
    }
    return messages
  }
}

/** A message of this type with these parts; texts end with a zero byte. */
export function message(type: string, ...parts: (string | Buffer)[]): Buffer {
  const body = Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(`${part}\0`) : part)))
  const head = Buffer.alloc(5)
  head.write(type, 0, 'latin1')
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

/** The text that begins at this byte and ends before the next zero byte. */
export function textAt(bytes: Buffer, start: number): string {
  return bytes.toString('utf8', start, bytes.indexOf(0, start))
}

/** An error as PostgreSQL reports it. */
export function errorMessage(code: string, text: string): Buffer {
  const field = (name: string, value: string) => Buffer.from(`${name}${value}\0`)
  return message(
    'E',
    Buffer.concat([field('S', 'ERROR'), field('V', 'ERROR'), field('C', code), field('M', text), Buffer.alloc(1)]),
  )
}

/** The code of an error message. */
export function codeOf({ bytes }: Message): string | undefined {
  for (let at = 5; bytes[at] !== 0; ) {
    const field = String.fromCharCode(bytes[at]!)
    const value = textAt(bytes, at + 1)
    if (field === 'C') return value
    at += 2 + Buffer.byteLength(value)
  }
  return undefined
}
