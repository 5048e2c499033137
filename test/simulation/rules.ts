// The error of a broken rule of the simulation.

export type Broken = string | false | undefined

/** The sentence about the first broken rule. */
export function first(rules: (() => Broken)[]): string | undefined {
  for (const rule of rules) {
    const finding = rule()
    if (finding) return finding
  }
  return undefined
}
