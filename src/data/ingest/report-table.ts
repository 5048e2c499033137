// The table at the end of an import from a service: sums there and the sums here.

// Columns of numbers are aligned to the right.
const RIGHT = new Set([3, 4, 5, 6])

/** Rows of cells in columns: kind, month, currency, then counts and sums. */
export function table(rows: string[][]): string {
  const widths = rows[0]!.map((_, n) => Math.max(...rows.map((row) => (row[n] ?? '').length)))
  return rows
    .map((row) =>
      row
        .map((cell, n) => (RIGHT.has(n) ? cell.padStart(widths[n] ?? 0) : cell.padEnd(widths[n] ?? 0)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
