// lib knows nothing of the business: no table, no prefix of a key or an id, and none of its nouns.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

const ROOT = join(import.meta.dirname, '../..')
const read = (folder: string, suffix: string) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(suffix))
    .map((name) => ({ name, text: readFileSync(join(ROOT, folder, name), 'utf8') }))

const NOUNS =
  /\b\w*(?:funnel|subscription|refund|charge[ds]?\b|webhook|erasure|stripe|billing|organization|profile_)\w*/gi
const PREFIXES = /\b(?:secret|operator|whsec|pro|ses|sub|trn)_(?=['"`$…])|'(?:pro|ses|sub|trn)'/g
const ALLOWED = {
  // The name is OpenAPI's own: requests that a server sends.
  'http/describe.ts': ['webhooks'],
  'http/document.ts': ['webhooks'],
  'http/reference-text.ts': ['webhooks'],
  // Every text that repeats a value hides keys, so the forms of keys are known below all who write texts.
  'hide-secrets.ts': ['secret_', 'operator_', 'whsec_'],
} as Record<string, string[]>

const sources = read('src/lib', '.ts')

test('no statement in lib names a table of the migrations', () => {
  const tables = read('migrations', '.sql').flatMap(({ text }) =>
    [...text.matchAll(/create (?:unlogged )?table (?:if not exists )?([a-z_]+)/gi)].map(([, table]) => table!),
  )
  assert.ok(tables.length > 20)
  const named = new RegExp(`\\b(?:from|join|into|update|table|on) (?:${[...new Set(tables)].join('|')})\\b`, 'gi')
  const code = sources.map(({ name, text }) => ({ name, text: text.replace(/^\s*(?:\/\/|\/?\*).*$/gm, '') }))
  assert.deepEqual(
    code.flatMap(({ name, text }) => [...text.matchAll(named)].map(([found]) => `${name}: ${found}`)),
    [],
  )
})

test('no file in lib mentions funnels, charges, webhooks and the like, or their prefixes', () => {
  const found = sources.flatMap(({ name, text }) =>
    [...text.matchAll(NOUNS), ...text.matchAll(PREFIXES)]
      .map(([word]) => word)
      .filter((word) => !ALLOWED[name]?.includes(word))
      .map((word) => `${name}: ${word}`),
  )
  assert.deepEqual(found, [])
})
