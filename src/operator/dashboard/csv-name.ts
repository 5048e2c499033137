// The name of a downloaded table: project, page, table, period and currency.
import { addDays } from '../../lib/days.ts'
import { isInOneCurrency, type Table } from './sheet.ts'
import type { Page } from './shell.ts'
import type { View } from './view.ts'

/** For example `Better-sleep_revenue_product_2026-10-28_2026-11-26_USD`, without characters that a file system refuses. */
export function csvName(view: View, { hasPeriod = false, days }: Page, table: string, content: Table): string {
  const { project, organization, span, path } = view
  const tenant = (project && tenantName(project)) || (organization && tenantName(organization)) || 'tundish'
  const [page = 'today', ...below] = path.split('/').filter(Boolean)
  return [
    tenant,
    page,
    // Else the files of two funnels, or of two people, would have the same name.
    ...below,
    ...(table === page ? [] : [table]),
    ...(content.of ?? []),
    ...(view.test ? ['test'] : []),
    ...(days ? [days.from, days.to] : hasPeriod ? [span.from, addDays(span.to, -1)] : [span.today]),
    ...(isInOneCurrency(content) ? [content.currency ?? 'USD'] : []),
    ...(content.cutAfter === undefined ? [] : [`first-${content.cutAfter}-rows`]),
  ]
    .map((part) => plain(part))
    .filter(Boolean)
    .join('_')
}

/** The name; the id if other letters would be missing from it, because the files of several projects would have the same name. */
const tenantName = ({ id, name }: { id: string; name: string }) =>
  /(?![A-Za-z0-9])[\p{L}\p{N}]/u.test(withoutAccents(name)) ? id : plain(name) || id

const withoutAccents = (text: string) => text.normalize('NFKD').replace(/\p{M}/gu, '')

// Other letters are written differently by the same header in different browsers.
const plain = (text: string) =>
  withoutAccents(text)
    .replace(/[^A-Za-z0-9-]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 60)
