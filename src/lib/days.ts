// The length of a day, and days in UTC as texts such as 2026-10-31.

export const DAY_S = 86_400
export const DAY_MS = 86_400_000

/** The day so many days later; a text with a time becomes a day. Throws a `RangeError` for what is no date. */
export const addDays = (day: string, days: number) =>
  new Date(Date.parse(day) + days * DAY_MS).toISOString().slice(0, 10)
