// Reads the tables and tiles of a page of the dashboard from its HTML.

/** The rows of the table with this id: plain values, or else the text of the cells. */
export function rowsOf(html: string, id: string): string[][] {
  const table = new RegExp(`<table id="${id}">.*?<tbody>(.*?)</tbody>`, 's').exec(html)
  if (!table) throw new Error(`There is no table "${id}".`)
  return [...table[1]!.matchAll(/<tr>(.*?)<\/tr>/gs)].map(([, row]) =>
    [...row!.matchAll(/<td([^>]*)>(.*?)<\/td>/gs)].map(
      ([, attributes, shown]) => /data-value="([^"]*)"/.exec(attributes!)?.[1] ?? textOf(shown!),
    ),
  )
}

/** The figures of the tiles by their labels. */
export function tilesOf(html: string): Record<string, string> {
  const tiles = html.matchAll(/<div class="tile"><dt>(.*?)<\/dt><dd><strong>(.*?)<\/strong>/gs)
  return Object.fromEntries([...tiles].map(([, label, shown]) => [textOf(label!), textOf(shown!)]))
}

export const money = (value: number) =>
  `$${value.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`

const textOf = (html: string) =>
  html
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
