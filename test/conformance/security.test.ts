// The security headers of pages on both listeners; and secrets are compared in constant time.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { unconnectedListener } from '../../scripts/openapi.ts'
import { equalSecrets } from '../../src/lib/secrets.ts'

for (const side of ['public', 'operator'] as const) {
  describe(`pages of the ${side} listener`, () => {
    let listener: FastifyInstance
    before(async () => {
      listener = await unconnectedListener(side)
    })
    after(() => listener.close())

    test('the page runs only its own script, in no frame, and sends no referrer', async () => {
      const { headers } = await listener.inject('/docs')
      const policy = new Map(
        String(headers['content-security-policy'])
          .split('; ')
          .map((rule) => [rule.split(' ', 1)[0]!, rule.slice(rule.indexOf(' ') + 1)]),
      )
      assert.equal(policy.get('default-src'), "'none'")
      assert.match(policy.get('script-src')!, /^'self' 'sha256-[A-Za-z0-9+/]{43}='$/)
      for (const rule of ['base-uri', 'form-action', 'frame-ancestors']) assert.equal(policy.get(rule), "'none'")
      assert.equal(policy.get('connect-src'), "'self'")
      assert.equal(headers['x-frame-options'], 'DENY')
      assert.equal(headers['referrer-policy'], 'no-referrer')
    })

    test('everything outside the APIs has `nosniff`, and allows no other origin', async () => {
      const paths = ['/docs', '/docs/reference.js', '/openapi.json', ...(side === 'operator' ? ['/metrics'] : [])]
      for (const url of paths) {
        const { statusCode, headers } = await listener.inject({ url, headers: { origin: 'https://example.com' } })
        // Without a database there are no metrics, but the headers are the same.
        assert.ok(statusCode === 200 || url === '/metrics', url)
        assert.equal(headers['x-content-type-options'], 'nosniff', url)
        const open = Object.keys(headers).filter((name) => name.startsWith('access-control'))
        assert.deepEqual(open, [], url)
      }
    })
  })
}

describe('comparing secrets', () => {
  test('equal secrets are equal; others, longer and shorter ones are not', () => {
    const one = Buffer.from('secret')
    assert.ok(equalSecrets(one, Buffer.from('secret')))
    for (const other of ['Secret', 'secreT', 'secre', 'secret ', '']) assert.ok(!equalSecrets(one, Buffer.from(other)))
  })

  test('no variable that is named like a secret is compared byte by byte, except those with a reason', () => {
    const found = sources().flatMap(([path, text]) =>
      text.split('\n').flatMap((line) => (COMPARES.test(line) ? [`${path}: ${line.trim()}`] : [])),
    )
    const unexplained = found.filter((line) => !HARMLESS.some(([place]) => line.startsWith(place)))
    assert.deepEqual(unexplained, [], 'Look it up by its hash, or use equalSecrets.')
    for (const [place] of HARMLESS)
      assert.ok(
        found.some((line) => line.startsWith(place)),
        `${place} is gone`,
      )
  })
})

const WORD = String.raw`(?:\w+[?!]?\.)*\w*(?:secret|hmac|signature|password|digest|hash|fingerprint|bearer)\w*`
// A check whether a secret is present does not compare bytes.
const COMPARES = new RegExp(
  String.raw`\b${WORD}\s*[!=]==(?!\s*(?:undefined|null)\b)|[!=]==\s*${WORD}|\.equals\(|Buffer\.compare\(`,
  'i',
)

/** Plain comparisons, and why they do not reveal a secret. */
const HARMLESS: [place: string, reason: string][] = [
  ['src/core/audit/audit.ts: if (last.master_key', 'both are ours; no caller brings one'],
  ['src/core/audit/verify.ts: if (!head ||', 'both come from the database'],
  ['src/core/audit/verify.ts: if (known?.committed', 'both are read from our own store, and neither is recomputed'],
  ['src/core/tenants/open-seal.ts: if (row!.value !== seal.fingerprint)', 'both are ours; no caller brings one'],
  ['src/core/tenants/open-seal.ts: if (row?.value !== next.fingerprint)', 'both are ours; no caller brings one'],
  ['src/operations/backup/reasons.ts:', 'the fingerprint in a backup is no secret'],
  ['src/operations/backup/script.ts:', 'a checksum, and the end of a table'],
  ['src/operations/backup/source.ts:', 'the first bytes of a file'],
  ['src/cli/commands/master-key.ts:', 'the operator has both keys'],
  ['src/operator/doctor/records.ts:', 'both are ours; no caller brings one'],
  ['src/core/lists/cursor.ts:', 'a checksum without a key: it finds mistakes, and hides nothing'],
]

function sources(): [path: string, text: string][] {
  const root = new URL('../../', import.meta.url)
  const paths = readdirSync(new URL('src', root), { recursive: true, encoding: 'utf8' })
  return paths
    .filter((path) => path.endsWith('.ts'))
    .map((path) => [`src/${path}`, readFileSync(new URL(`src/${path}`, root), 'utf8')])
}
