// Prints the results, and saves them with a description of the machine as JSON and as a plot.
import { mkdir, writeFile } from 'node:fs/promises'
import { cpus, release, totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { Result, Spread } from './measure.ts'
import type { Options } from './options.ts'
import { plot, type Row } from './plot.ts'
import { short, table } from './table.ts'

export interface Machine {
  cpu: string | undefined
  cores: number
  memoryGiB: number
  system: string
  node: string
  /** The tools that were used; undefined if one is not installed. */
  tools: Record<string, string | boolean | undefined>
}

export function describeMachine(tools: Machine['tools']): Machine {
  return {
    cpu: cpus()[0]?.model,
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${process.platform} ${release()}`,
    node: process.version,
    tools,
  }
}

export function printResults(results: Result[]): void {
  const measured = results.filter(({ contenders }) => contenders.ours)
  const rows = measured.map(({ name, unit, contenders: { ours }, ratios }) => [
    name,
    `${short(ours!.perSecond)} ${unit}`,
    spread(ratios.limit),
    spread(ratios.few),
    spread(ratios.plain),
    spread(ratios.wire),
    short(ours!.p50Ms),
    short(ours!.p99Ms),
    short(ours!.cpu?.server),
    short(ours!.cpu?.postgres),
  ])
  const heads = [
    'case',
    'a second',
    'of limit',
    'of few',
    'of plain',
    'of wire',
    'p50 ms',
    'p99 ms',
    'CPU s/1000',
    'PostgreSQL',
  ]
  if (rows.length > 0) print(table(heads, rows))
  printContenders(measured)
  printGrowth(results)
  for (const { name, figures, failure } of results) {
    if (figures && !figures.ratios) print(`${name}: ${JSON.stringify(figures, rounded, 1).replaceAll(/\s+/g, ' ')}`)
    if (failure) print(`${name} could not be measured: ${failure}`)
  }
}

/** A row for each contender of each case, with the CPU milliseconds of the server and of PostgreSQL for one of the unit. */
function printContenders(results: Result[]): void {
  const rows = results.flatMap(({ name, contenders }) =>
    Object.entries(contenders).map(([contender, { perSecond, p50Ms, p99Ms, cpu }]) => {
      const figures = [perSecond, p50Ms, p99Ms, cpu?.server || undefined, cpu?.postgres]
      return [`${name} ${contender}`, ...figures.map((figure, n) => (n < 3 ? short(figure) : fine(figure)))]
    }),
  )
  const heads = ['contender', 'a second', 'p50 ms', 'p99 ms', 'CPU ms', 'PostgreSQL']
  if (rows.length > 0) print(table(heads, rows))
}

const fine = (value: number | undefined) => (value === undefined || Number.isNaN(value) ? '–' : value.toFixed(3))

/** A column for each size: the median time, and its ratio to that of the smallest. */
function printGrowth(results: Result[]): void {
  const grown = results.filter(({ figures }) => figures?.ratios)
  if (grown.length === 0) return
  const labels = Object.keys(grown[0]!.figures!['p50 ms'] as object)
  const rows = grown.map(({ name, figures }) => {
    const times = figures!['p50 ms'] as Record<string, number>
    const ratios = figures!.ratios as Record<string, Spread>
    const cells = labels.map((label) => {
      const ratio = ratios[label]
      return `${times[label]!.toFixed(2)} ms${ratio ? ` ×${ratio.median.toFixed(2)}` : ''}`
    })
    return [name, ...cells]
  })
  print(table(['p50', ...labels], rows))
}

const print = (text: string) => void process.stdout.write(`${text}\n`)
// Whole numbers stay exact, because they are counts.
const rounded = (_: string, value: unknown) =>
  typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value

function spread(ratio: Spread | undefined): string {
  return ratio ? `${ratio.median.toFixed(2)} (${ratio.least.toFixed(2)}–${ratio.most.toFixed(2)})` : '–'
}

/** Writes `results/DATE[-KIND].json` and `.svg`; see `kindOf`. */
export async function saveResults(
  kind: string,
  options: Options,
  machine: Machine,
  results: Result[],
): Promise<string> {
  const folder = new URL('results/', import.meta.url)
  await mkdir(folder, { recursive: true })
  const name = [new Date().toISOString().slice(0, 10), kind].filter(Boolean).join('-')
  const kept = { machine, options, results }
  await writeFile(new URL(`${name}.json`, folder), `${JSON.stringify(kept, rounded, 2)}\n`)
  const rows = results.some(({ name }) => name.startsWith('growth')) ? growthRows(results) : ratioRows(results)
  if (rows.length > 0) await writeFile(new URL(`${name}.svg`, folder), plot(titleOf(kind, machine, rows), rows))
  return fileURLToPath(new URL(name, folder))
}

function titleOf(kind: string, { cpu, cores }: Machine, rows: Row[]) {
  const growth = kind === 'growth' || kind === 'totals'
  const where = `${cores} × ${cpu}, ${new Date().toISOString().slice(0, 10)}`
  const names = [...new Set(rows.flatMap(({ dots }) => dots.map(({ series }) => series)))]
  return growth
    ? {
        title: 'Median response time, relative to ten thousand subscriptions',
        where,
        mark: 1.3,
        markLabel: 'bound',
        names,
      }
    : { title: 'Throughput as a share of PostgreSQL alone', where, mark: 1, markLabel: 'PostgreSQL alone', names }
}

/** The throughput of ours and of plain as fractions of the limit. */
function ratioRows(results: Result[]): Row[] {
  return results.flatMap(({ name, ratios, contenders }) => {
    const { limit } = ratios
    if (!limit) return []
    const plain = contenders.plain && contenders.plain.perSecond / contenders.limit!.perSecond
    const dots = [{ series: 'Tundish', value: limit.median, least: limit.least, most: limit.most }]
    return [{ label: name, dots: plain ? [...dots, { series: 'a plain server', value: plain }] : dots }]
  })
}

function growthRows(results: Result[]): Row[] {
  return results.flatMap(({ name, figures }) => {
    const ratios = figures?.ratios as Record<string, Spread> | undefined
    if (!ratios) return []
    // The largest comes first, because the plot prints the number of the first.
    const [smaller, ...others] = Object.entries(ratios)
    const dots = [others[0]!, smaller!, ...others.slice(1)].map(([series, { median, least, most }]) => ({
      series,
      value: median,
      least,
      most,
    }))
    return [{ label: name.replace('growth ', ''), dots }]
  })
}
