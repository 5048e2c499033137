// Generates clients with openapi-typescript and @hey-api/openapi-ts, compiles them strictly, and calls the server.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { lastJson, type Outcome, run, type Trial, write } from './run.ts'

// The generators need the API of TypeScript 5, and stand in the client's own folder with it.
const CLIENT = fileURLToPath(new URL('../../clients/js/package.json', import.meta.url))
const { resolve } = createRequire(CLIENT)
const TSC = resolve('typescript/bin/tsc')

const versionOf = (name: string) =>
  JSON.parse(readFileSync(join(dirname(CLIENT), 'node_modules', name, 'package.json'), 'utf8')).version as string

const STRICT = ['--strict', '--skipLibCheck']
const EMIT = ['--target', 'es2022', '--lib', 'es2022,dom,dom.iterable', '--outDir', 'out']

const TYPES = `import type { components, paths } from './schema.ts'
declare const process: { env: Record<string, string> }
type Subscriptions = paths['/public/v1/subscriptions']['get']['responses'][200]['content']['application/json']
type Session = components['schemas']['SessionDetail']
async function get<T>(path: string): Promise<T> {
  const response = await fetch(process.env['API'] + path, { headers: { 'Service-Secret': process.env['KEY']! } })
  return (await response.json()) as T
}
const { data } = await get<Subscriptions>('/public/v1/subscriptions')
const session = await get<Session>('/public/v1/sessions/session')
const value: string | string[] | null = session.replies[0]!.value
const status: 'created' | 'trialing' | 'active' | 'paused' | 'cancelled' | 'expired' | 'unpaid' = data[0]!.status
const email: string | null = data[0]!.profile.email
const price: number = data[0]!.price
if (status !== 'active') throw new Error(status)
console.log(JSON.stringify({ value, price, email }))
export {}
`

export async function openapiTypescript({ document, folder, url, key }: Trial): Promise<Outcome> {
  const cwd = join(folder, 'openapi-typescript')
  write(cwd, { 'use.ts': TYPES, 'package.json': '{"type":"module"}' })
  const cli = join(dirname(resolve('openapi-typescript/package.json')), 'bin/cli.js')
  const output = await run(process.execPath, [cli, document, '-o', 'schema.ts'], { cwd })
  const compile = ['--module', 'nodenext', '--rewriteRelativeImportExtensions', ...STRICT, ...EMIT]
  await run(process.execPath, [TSC, ...compile, 'use.ts'], { cwd })
  const read = lastJson(await run(process.execPath, ['out/use.js'], { cwd, env: { API: url, KEY: key } }))
  return {
    generator: 'openapi-typescript',
    version: versionOf('openapi-typescript'),
    warnings: warningsIn(output),
    read,
  }
}

const SDK = `import { client } from './client/client.gen'
import { createOneOffCharge, getSession, listSubscriptions } from './client'
declare const process: { env: Record<string, string> }
async function main() {
  client.setConfig({ baseUrl: process.env['API']!, headers: { 'Service-Secret': process.env['KEY']! } })
  const query = { 'filter[status]': 'active', limit: 5 } as const
  const { data: page } = await listSubscriptions({ query, throwOnError: true })
  const { data: session } = await getSession({ path: { id: 'session' }, throwOnError: true })
  const refused = await createOneOffCharge({
    path: { org_id: 'nobody' },
    headers: { 'service-secret-key': 'wrong' },
    body: { external_id: 'user', amount: '10.50', currency_code: 'USD', idempotency_key: 'key' },
  })
  const message: string | undefined = refused.error?.message
  if (refused.response?.status !== 401 || !message) throw new Error('the charge was not refused')
  const value: string | string[] | null = session.replies[0]!.value
  console.log(JSON.stringify({ value, price: page.data[0]!.price, email: page.data[0]!.profile.email }))
}
main()
`

export async function heyApi({ document, folder, url, key }: Trial): Promise<Outcome> {
  const cwd = join(folder, 'hey-api')
  write(cwd, { 'use.ts': SDK, 'package.json': '{"type":"commonjs"}' })
  const cli = join(dirname(CLIENT), 'node_modules/@hey-api/openapi-ts/bin/run.js')
  const output = await run(process.execPath, [cli, '-i', document, '-o', 'client'], { cwd })
  const compile = ['--module', 'commonjs', '--moduleResolution', 'node10', ...STRICT, ...EMIT]
  await run(process.execPath, [TSC, ...compile, 'use.ts'], { cwd })
  const read = lastJson(await run(process.execPath, ['out/use.js'], { cwd, env: { API: url, KEY: key } }))
  return {
    generator: '@hey-api/openapi-ts',
    version: versionOf('@hey-api/openapi-ts'),
    warnings: warningsIn(output),
    read,
  }
}

export function warningsIn(output: string): string[] {
  return output.split('\n').filter((line) => /\bwarn/i.test(line))
}
