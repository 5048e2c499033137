// Replaces src/lib/ids.ts by counted ids, so that a repeated seed creates the same ones.

let series = 0
let count = 0

/** Starts the ids of a seed, which differ from those of all other seeds. */
export function beginIds(seed: number): void {
  series = seed
  count = 0
}

export function makeUuid(): string {
  const hex = (number: number, digits: number) => number.toString(16).padStart(digits, '0')
  return `${hex(series, 8)}-0000-7000-8000-${hex(++count, 12)}`
}

export const isUuid = (text: string) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)

export function makeRecordId(prefix: string): string {
  return `${prefix}_${series}-${++count}`
}
