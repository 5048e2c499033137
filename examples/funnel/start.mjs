// npm run example: starts the demo, makes what the quiz needs by the commands that you would use, and starts the quiz.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const PORT = process.env.EXAMPLE_PORT ?? '3000'
// The quiz listens on this machine, where webhooks are not sent without this setting.
const env = { ...process.env, WEBHOOK_ALLOW_PRIVATE: 'true' }

// Before anything is started.
try {
  const probe = createServer().listen(Number(PORT), '127.0.0.1')
  await once(probe, 'listening')
  probe.close()
} catch (error) {
  console.error(`The quiz cannot use port ${PORT} (${error.message}): set EXAMPLE_PORT to another.`)
  process.exit(2)
}

/** Runs a command, and returns what it prints as JSON. */
async function tundish(...words) {
  const { stdout } = await promisify(execFile)(`${ROOT}bin/tundish`, [...words, '--json'], { cwd: ROOT, env })
  return JSON.parse(stdout)
}

const demo = spawn(`${ROOT}bin/tundish`, ['serve', '--demo'], { cwd: ROOT, env, stdio: ['inherit', 'pipe', 'inherit'] })
const stop = (signal) => demo.kill(signal)
process.once('SIGTERM', () => stop('SIGTERM'))
// Ctrl-C reaches all of them; the demo ends last.
process.on('SIGINT', () => {})
demo.once('exit', (code) => process.exit(code ?? 1))

let text = ''
demo.stdout.setEncoding('utf8').on('data', (part) => {
  process.stdout.write(part)
  text += part
})
const printed = (pattern) => pattern.exec(text)?.[1]
while (!printed(/(The link works once|the link works once)/)) await new Promise((resolve) => setTimeout(resolve, 100))

const project = await tundish(
  'keys',
  'create',
  '--project',
  'demo',
  '--name',
  'example',
  '--scope',
  'read,write,erase',
  '--expires',
  '7d',
)
const organization = await tundish(
  'keys',
  'create',
  '--org',
  'demo',
  '--name',
  'example',
  '--scope',
  'charge,refund,report',
  '--expires',
  '7d',
)
const units = await tundish('credits', 'unit', 'list', '--org', 'demo')
if (!JSON.stringify(units).includes('"tokens"'))
  await tundish('credits', 'unit', 'create', 'tokens', '--org', 'demo', '--name', 'Tokens')
const address = `http://127.0.0.1:${PORT}/webhooks`
const endpoints = await tundish('webhook', 'list', '--project', 'demo')
if (!JSON.stringify(endpoints).includes(`"${address}"`))
  await tundish('webhook', 'create', '--url', address, '--project', 'demo')

const quiz = spawn(
  process.execPath,
  ['--disable-warning=ExperimentalWarning', fileURLToPath(new URL('server.mjs', import.meta.url))],
  {
    stdio: 'inherit',
    env: {
      ...process.env,
      PORT,
      TUNDISH_URL: printed(/Data API +(http\S+)\/public\/v1/),
      PROJECT_KEY: project.secret_key,
      ORGANIZATION: 'demo',
      ORGANIZATION_KEY: organization.secret_key,
      // Webhooks are signed with the project's full key.
      WEBHOOK_SECRET: `whsec_${Buffer.from(printed(/Service-Secret +(secret_\S+)/)).toString('base64')}`,
      STRIPE_API: printed(/Stripe simulator +(http\S+)/),
      // The key of the demo's merchant account at the simulator.
      STRIPE_KEY: 'sk_test_tundishDemo0001',
    },
  },
)
quiz.once('exit', () => stop('SIGTERM'))
process.once('SIGTERM', () => quiz.kill('SIGTERM'))
