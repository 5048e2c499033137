// Draws a plot as SVG for light and dark backgrounds: a row for each case, a dot for each series, a line from its minimum
// to its maximum.

export interface Dot {
  series: string
  value: number
  least?: number
  most?: number
}

export interface Row {
  label: string
  dots: Dot[]
}

export interface Head {
  title: string
  where: string
  /** The value of a line across all rows, and its label. */
  mark: number
  markLabel: string
  names: string[]
}

const WIDTH = 860
const LEFT = 220
const RIGHT = 70
const TOP = 96
const ROW = 30
const BOTTOM = 44
// Distinguishable with red-green colour blindness, on white and on black.
const COLOURS = ['#2a7de1', '#e08a1e', '#8a63d2', '#1d9a6c']

const STYLE = `
  svg { font: 13px system-ui, sans-serif; --ink: #1f2430; --soft: #6a7280; --line: #e3e6eb; --paper: #ffffff }
  @media (prefers-color-scheme: dark) { svg { --ink: #e8eaf0; --soft: #9aa3b2; --line: #2c3240; --paper: #14171f } }
  .paper { fill: var(--paper) } text { fill: var(--ink) } .soft { fill: var(--soft) } .title { font-size: 17px; font-weight: 600 }
  .grid { stroke: var(--line) } .mark { stroke: var(--soft); stroke-dasharray: 4 4 } .value { font-size: 12px; fill: var(--soft) }`

/** The text of the SVG. */
export function plot({ title, where, mark, markLabel, names }: Head, rows: Row[]): string {
  const ends = rows.flatMap(({ dots }) => dots.map(({ value, most = value }) => most))
  const most = niceEnd(Math.max(mark, ...ends.filter(Number.isFinite)))
  const x = (value: number) => round(LEFT + (value / most) * (WIDTH - LEFT - RIGHT))
  const height = TOP + rows.length * ROW + BOTTOM
  const bottom = height - BOTTOM
  const ticks = Array.from({ length: 6 }, (_, n) => (most * n) / 5)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">`,
    `<title>${xml(title)}</title><style>${STYLE}</style>`,
    `<rect class="paper" width="${WIDTH}" height="${height}" rx="10"/>`,
    `<text class="title" x="24" y="34">${xml(title)}</text>`,
    `<text class="soft" x="24" y="54">${xml(where)}</text>`,
    legend(names),
    ...ticks.map(
      (tick) =>
        `<line class="grid" x1="${x(tick)}" x2="${x(tick)}" y1="${TOP}" y2="${bottom}"/>` +
        `<text class="soft" x="${x(tick)}" y="${bottom + 20}" text-anchor="middle">${Number(tick.toFixed(2))}</text>`,
    ),
    `<line class="mark" x1="${x(mark)}" x2="${x(mark)}" y1="${TOP - 6}" y2="${bottom}"/>`,
    `<text class="soft" x="${x(mark)}" y="${TOP - 12}" text-anchor="middle">${xml(markLabel)}</text>`,
    ...rows.map((row, n) => rowOf(row, TOP + n * ROW + ROW / 2, names, x)),
    '</svg>\n',
  ].join('\n')
}

function legend(names: string[]): string {
  let at = 24
  return names
    .map((name) => {
      const item = `<circle cx="${at + 5}" cy="74" r="5" fill="${colourOf(name, names)}"/><text x="${at + 16}" y="78">${xml(name)}</text>`
      at += 40 + name.length * 7.5
      return item
    })
    .join('')
}

function rowOf({ label, dots }: Row, y: number, names: string[], x: (value: number) => number): string {
  const drawn = dots.toReversed().map(({ series, value, least = value, most = value }) => {
    const colour = colourOf(series, names)
    return (
      `<line x1="${x(least)}" x2="${x(most)}" y1="${y}" y2="${y}" stroke="${colour}" stroke-width="3" opacity="0.45" stroke-linecap="round"/>` +
      `<circle cx="${x(value)}" cy="${y}" r="5.5" fill="${colour}"/>`
    )
  })
  return (
    `<text x="${LEFT - 14}" y="${y + 4}" text-anchor="end">${xml(label)}</text>` +
    `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y + ROW / 2}" y2="${y + ROW / 2}"/>` +
    drawn.join('') +
    `<text class="value" x="${WIDTH - 24}" y="${y + 4}" text-anchor="end">${dots[0]!.value.toFixed(2)}</text>`
  )
}

const colourOf = (name: string, names: string[]) => COLOURS[names.indexOf(name) % COLOURS.length]!

/** An end of the axis that is divided by five steps into round numbers. */
function niceEnd(most: number): number {
  const step = most / 5
  const power = 10 ** Math.floor(Math.log10(step))
  return 5 * power * [1, 2, 2.5, 5, 10].find((one) => one * power >= step * 0.999)!
}

const round = (value: number) => Math.round(value * 10) / 10

function xml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
