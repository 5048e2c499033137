// Formats tables for a terminal: columns as wide as their content, numbers right-aligned.

/** Rows of cells under their headings; cells that look like numbers are right-aligned. */
export function table(heads: string[], rows: string[][]): string {
  const widths = heads.map((head, n) => Math.max(head.length, ...rows.map((row) => (row[n] ?? '').length)))
  const line = (cells: string[]) =>
    cells
      .map((cell, n) => (/^[0-9–]/.test(cell) || n > 0 ? cell.padStart(widths[n]!) : cell.padEnd(widths[n]!)))
      .join('  ')
      .trimEnd()
  return [line(heads), widths.map((width) => '─'.repeat(width)).join('  '), ...rows.map(line)].join('\n')
}

/** A number with its significant digits. */
export function short(value: number | undefined): string {
  if (value === undefined || Number.isNaN(value)) return '–'
  if (value >= 100) return Math.round(value).toLocaleString('en')
  return value.toFixed(2)
}
