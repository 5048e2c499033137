// A server that a check started: waits until it responds, makes a charge of the demo, and stops it.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'

const PATIENCE_MS = 300_000

export interface Serving {
  /** Milliseconds from the start to the first response that is ready. */
  readyMs: number
  output(): string
  /** Sends SIGTERM and waits. Throws unless the exit code is 0. */
  stop(): Promise<void>
}

/** Starts `program`, and waits until `url` is ready. */
export async function serving(program: string, args: string[], url: string): Promise<Serving> {
  const began = performance.now()
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  await untilReady(url, () => {
    if (child.exitCode !== null) throw new Error(`The server ended with ${child.exitCode}: ${output.slice(-2000)}`)
  })
  return { readyMs: Math.round(performance.now() - began), output: () => output, stop: () => stop(child, () => output) }
}

/** Waits until GET /health/ready is 200; `check` may throw. */
export async function untilReady(url: string, check: () => void = () => {}): Promise<void> {
  const end = Date.now() + PATIENCE_MS
  while (Date.now() < end) {
    check()
    const response = await fetch(`${url}/health/ready`).catch(() => undefined)
    if (response?.ok) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`${url}/health/ready was not 200 within ${PATIENCE_MS / 1000} s.`)
}

/** Waits until the demo has printed its keys, and charges the card of its customer "ada" twice with one key. */
export async function chargeDemo(url: string, output: () => string): Promise<void> {
  const end = Date.now() + PATIENCE_MS
  let key: string | undefined
  while (!key && Date.now() < end) {
    key = /service-secret-key: (secret_[\w-]{43})/.exec(output())?.[1]
    if (!key) await new Promise((resolve) => setTimeout(resolve, 200))
  }
  if (!key) throw new Error('The demo printed no key.')
  const body = { external_id: 'ada', amount: '9.99', currency_code: 'USD', idempotency_key: 'release' }
  const charge = async () => {
    const response = await fetch(`${url}/demo/v1/payment/one_off_charge`, {
      method: 'POST',
      headers: { 'service-secret-key': key, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return (await response.json()) as { checkout_status: string; idempotent_replay: boolean }
  }
  const first = await charge()
  const second = await charge()
  if (first.checkout_status !== 'succeeded' || first.idempotent_replay || !second.idempotent_replay)
    throw new Error(`The charge ended as ${JSON.stringify([first, second])}.`)
}

async function stop(child: ChildProcess, output: () => string): Promise<void> {
  const ended = child.exitCode === null ? once(child, 'exit') : Promise.resolve([child.exitCode])
  child.kill('SIGTERM')
  const [code] = await ended
  if (code !== 0) throw new Error(`After SIGTERM the server ended with ${code}: ${output().slice(-2000)}`)
}
