// A command whose database is lost while it works ends with a sentence and exit code 1, not with a stack trace.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { tundish } from '../../support/cli.ts'
import { ORGANIZATION, openEvents, PROJECT } from '../../support/events.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { openProxy } from '../../support/proxy.ts'

const folder = temporaryFolder()
const rates = join(folder, 'rates.csv')
writeFileSync(rates, 'date,currency,per_euro\n2026-01-02,USD,1.1\n')

const cutAt: { pattern: RegExp | undefined } = { pattern: undefined }
const events = await openEvents()
const proxy = await openProxy(events.settings['DATABASE_URL']!, cutAt)
const env: Record<string, string> = { ...events.settings, DATABASE_URL: proxy.url }
after(async () => {
  await proxy.cut()
  await events.close()
})

const ORDER = '0191d0a3-6a1f-7c44-9a50-0a4a3c7e1f01'

// The statement before which the connection breaks.
const commands: [words: string[], at: RegExp][] = [
  [['org', 'list'], /from organizations/],
  [['project', 'create', 'other', '--org', ORGANIZATION], /insert into projects/],
  [['keys', 'regenerate', '--yes', '--org', ORGANIZATION], /insert into secret_keys/],
  [['webhook', 'list', '--project', PROJECT], /from webhook_endpoints/],
  [['webhook', 'listen', '--project', PROJECT, '--forward-to', 'http://127.0.0.1:9/'], /from events/],
  [['charges', 'resolve', ORDER, '--as', 'failed', '--because', 'nobody knows'], /from orders/],
  [['erasures', 'export'], /from erasures/],
  [['rates', 'load', rates], /exchange_rates/],
  [['report', '--org', ORGANIZATION, '--month', '2026-01'], /report_transactions/],
  [['reconcile', '--since', '2026-01-01T00:00:00Z'], /from merchant_accounts/],
  [['audit', 'verify'], /from audit_log/],
  [['master-key', 'replace', '--others-are-stopped', '--to', '-'], /from secret_keys/],
]

for (const [words, pattern] of commands) {
  test(`1 and a sentence: ${words.slice(0, 2).join(' ')}`, async () => {
    cutAt.pattern = pattern
    const outcome = await tundish(words, env, `${Buffer.alloc(32, 7).toString('base64')}\n`)
    const stderr =
      'The database became unavailable (Connection terminated unexpectedly): check what the command did before you repeat it.\n'
    const stdout = words[1] === 'listen' ? outcome.stdout : ''
    assert.deepEqual(outcome, { code: 1, stdout, stderr })
  })
}
