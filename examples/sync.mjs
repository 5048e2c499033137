// Reads the subscriptions that changed since the last run, and keeps the horizon in a file: node sync.mjs FILE.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'

const { TUNDISH_URL, PROJECT_KEY } = process.env
const [file] = process.argv.slice(2)
function stop(why) {
  console.error(why)
  process.exit(1)
}
if (!TUNDISH_URL || !PROJECT_KEY || !file) stop('Set TUNDISH_URL and PROJECT_KEY, and name a file: node sync.mjs FILE')
process.on('uncaughtException', ({ message, cause }) =>
  stop(`${TUNDISH_URL}: ${cause?.code ?? cause?.message ?? message}`),
)
const from = existsSync(file) ? readFileSync(file, 'utf8') : '1970-01-01T00:00:00Z'
const headers = { 'Service-Secret': PROJECT_KEY }

// Every change before the horizon is visible, and none will be added: a window that ends there misses nothing.
const nothing = new URLSearchParams({ 'filter[updated_at.to]': '1970-01-01T00:00:00Z', limit: '1' })
const first = await fetch(`${TUNDISH_URL}/public/v1/subscriptions?${nothing}`, { headers })
const to = first.headers.get('x-sync-horizon')
let cursor
do {
  const query = new URLSearchParams({ 'filter[updated_at.from]': from, 'filter[updated_at.to]': to, limit: '500' })
  if (cursor) query.set('cursor', cursor)
  const response = await fetch(`${TUNDISH_URL}/public/v1/subscriptions?${query}`, { headers })
  const { data, pagination, message } = await response.json()
  if (!response.ok) stop(message)
  const lost = response.headers.get('x-void-from')
  if (lost) stop(`The server has lost commits: delete what has an updated_at from ${lost} on, and ${file}.`)
  for (const { id, status, updated_at } of data) console.log(id, status, updated_at)
  cursor = pagination.next_cursor
} while (cursor)
// Only now: a run that ends early is repeated.
writeFileSync(file, to)
