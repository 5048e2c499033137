// npm run test:deep copies [-- PEOPLE]: copies a Tundish of so many people (30,000, some 240,000 records) by `tundish import api`,
// killed at twenty moments during writes, and compares every record and payment of both sides.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')
const env = { ...process.env, API_PEOPLE: process.argv[2] ?? '30000' }
const test = 'test/data/ingest/api/killed.slow.test.ts'
process.exit(spawnSync(join(ROOT, 'bin/test'), [test], { cwd: ROOT, env, stdio: 'inherit' }).status ?? 1)
