// How a rule of the simulation says that it is broken.

export type Broken = string | false | undefined

/** What the first broken rule says. */
export function first(rules: (() => Broken)[]): string | undefined {
  for (const rule of rules) {
    const finding = rule()
    if (finding) return finding
  }
  return undefined
}
