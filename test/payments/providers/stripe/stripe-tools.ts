// Stripe's mock server and OpenAPI document, if this machine has them.
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../../support/cli.ts'
import { until } from '../../../support/time.ts'

// The version whose embedded document is closest to the API version of the adapter.
const STRIPE_MOCK = 'github.com/stripe/stripe-mock@v0.203.0'

export type Found<T> = { found: T } | { why: string }

/** The program, built by Go on first use and cached; or the address in STRIPE_MOCK_URL. */
export function findStripeMock(): Found<{ url: string } | { program: string }> {
  const url = process.env['STRIPE_MOCK_URL']
  if (url) return { found: { url } }
  const folder = join(tmpdir(), 'tundish-stripe-mock')
  const program = join(folder, 'stripe-mock')
  if (existsSync(program)) return { found: { program } }
  try {
    execFileSync('go', ['install', STRIPE_MOCK], {
      env: { ...process.env, GOBIN: folder },
      stdio: 'ignore',
      timeout: 180_000,
    })
    return { found: { program } }
  } catch {
    return { why: 'STRIPE_MOCK_URL is not set, and Go cannot build stripe-mock here' }
  }
}

/** Runs it on a free port until `close`. */
export async function startStripeMock(mock: { url: string } | { program: string }) {
  if ('url' in mock) return { url: mock.url, close() {} }
  const port = await freePort()
  const child = spawn(mock.program, ['-http-port', String(port), '-https-port', '-1'], { stdio: 'ignore' })
  const url = `http://127.0.0.1:${port}`
  await until('stripe-mock', () =>
    fetch(url).then(
      () => true,
      () => false,
    ),
  )
  return { url, close: () => void child.kill() }
}

/** Stripe's OpenAPI document: of STRIPE_OPENAPI, or of stripe-mock in Go's module cache. */
export function findStripeOpenApi(): Found<unknown> {
  const path = process.env['STRIPE_OPENAPI'] ?? ofModuleCache()
  if (!path) return { why: 'STRIPE_OPENAPI is not set, and Go has no stripe-mock in its module cache' }
  return { found: JSON.parse(readFileSync(path, 'utf8')) }
}

function ofModuleCache(): string | undefined {
  try {
    const cache = execFileSync('go', ['env', 'GOMODCACHE'], { encoding: 'utf8' }).trim()
    return globSync(`${cache}/${STRIPE_MOCK}/embedded/openapi/spec3.json`)[0]
  } catch {
    return undefined
  }
}
