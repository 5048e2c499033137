// The change of revenue by dimension: the revenue of each product, country … in the period and in the days it is compared with.

import { filterLink } from '../filter.ts'
import { change, money, words } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { figures, roundMoney, valueCell } from '../numbers.ts'
import { tableSection } from '../parts.ts'
import { comparable, comparison } from '../period.ts'
import { cell, named, numbers, type Table } from '../sheet.ts'
import type { View } from '../view.ts'

interface Pair {
  now: number
  before: number
}

// All others are summed in one row.
const MAX_ROWS = 10

/** The section for a dimension, largest difference first; empty if no day of the period is over. */
export async function revenueChange(view: View, split: string): Promise<(nameOf: (key: string) => string) => Piece> {
  const days = comparable(view.span)
  if (!days) return () => ''
  const found = await figures(view, 'revenue', { by: split, ...days, compare: true })
  const pairs = found.map(({ key, values, previous }): [string, Pair] => [
    key!,
    { now: values.revenue ?? 0, before: previous?.revenue ?? 0 },
  ])
  const changed = pairs
    .filter(([, pair]) => differenceOf(pair) !== 0)
    .sort(([, a], [, b]) => Math.abs(differenceOf(b)) - Math.abs(differenceOf(a)))
  if (changed.length === 0) return () => ''
  return (nameOf) =>
    tableSection(view, 'change', changeTable(view, split, changed, nameOf, sumOf(pairs.map(([, pair]) => pair))), {
      note: `Gross; ${comparison(view.span)}.`,
    })
}

function changeTable(
  view: View,
  split: string,
  changed: [string, Pair][],
  nameOf: (key: string) => string,
  all: Pair,
): Table {
  const isLong = changed.length > MAX_ROWS + 1
  const shown = isLong ? changed.slice(0, MAX_ROWS) : changed
  const others = sumOf(changed.slice(shown.length).map(([, pair]) => pair))
  return {
    caption: `Change of revenue by ${split}`,
    columns: [{ label: words(split) }, ...numbers('Before', 'Now', 'Difference', 'Change')],
    rows: [
      ...shown.map(([key, pair]) => rowOf(view, named(filterLink(view, split, key, nameOf(key)), key), pair)),
      ...(isLong ? [rowOf(view, 'others', others)] : []),
      rowOf(view, 'All', all),
    ],
  }
}

function rowOf({ reporting: { currency } }: View, name: Table['rows'][0][0], pair: Pair): Table['rows'][0] {
  const difference = differenceOf(pair)
  const sign = difference > 0 && '+'
  const tone = difference < 0 ? 'poor' : 'good'
  return [
    name!,
    valueCell('usd', pair.before),
    valueCell('usd', pair.now),
    {
      ...valueCell('usd', difference),
      shown: html`<span class="change ${tone}">${sign}${money(difference, currency)}</span>`,
    },
    cell(change(pair.now, pair.before, { none: 'new' }), pair.before ? pair.now / pair.before - 1 : null),
  ]
}

const differenceOf = ({ now, before }: Pair) => roundMoney(now - before)

const sumOf = (all: Pair[]): Pair => ({
  now: roundMoney(all.reduce((sum, { now }) => sum + now, 0)),
  before: roundMoney(all.reduce((sum, { before }) => sum + before, 0)),
})
