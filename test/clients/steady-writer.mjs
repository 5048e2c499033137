// A program that writes profiles in batches and prints each batch that is written: it is killed and started again by a test.
import { Tundish } from '@tundish/client'

const { url, projectKey, from, to } = JSON.parse(process.env.CONFIG)
const tell = (what) => process.stdout.write(`${JSON.stringify(what)}\n`)
const tundish = new Tundish({
  url,
  projectKey,
  ingest: {
    onRejected: ({ record, code }) => tell({ rejected: record.data.id, code }),
    onError: () => tell({ failed: true }),
  },
})

process.once('SIGTERM', async () => {
  const left = await tundish.close({ timeoutMs: 500 })
  tell({ left: left.map(({ data }) => data.id) })
  process.exit()
})

const BATCH = 5
for (let n = from; n < to; n += BATCH) {
  for (let i = n; i < n + BATCH; i += 1) {
    // Twice, so that their order matters; and one that is bad.
    tundish.identify({ id: `p${i}`, created_at: '2026-01-31T09:00:00Z', phone: 'early' })
    tundish.identify({ id: `p${i}`, phone: `late ${i}` })
  }
  tundish.session({ id: `s${n}`, created_at: '2026-01-31T09:00:00Z', profile_id: 'nobody' })
  await tundish.flush()
  tell({ written: n + BATCH })
}
await tundish.close()
