// Clients that charge: HTTP by hand over kept-alive sockets, so that they take little of the machine they measure.
import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** What a client knows of one charge. */
export interface Entry {
  /** Its trace, by which the server's and the provider's own times are found. */
  trace: string
  orderId: string
  status: string
  /** From when it had to be sent to the end of its answer: what waits to be sent waits too. */
  ms: number
}

export interface Tenant {
  id: string
  key: string
}

export interface Target {
  url: string
  /** They have the customers in turn: the first organization has customer 1. */
  organizations: Tenant[]
  amount: string
  /** How many customers there are; their external_id is the prefix, a space and a number from 1. */
  customers: number
}

/** Charges over this many connections, each as soon as the last is answered. */
export async function chargeWithoutPause(
  target: Target,
  prefix: string,
  connections: number,
  seconds: number,
): Promise<Entry[]> {
  const until = performance.now() + seconds * 1000
  const entries: Entry[] = []
  const next = customersOf(target, prefix)
  const work = Array.from({ length: connections }, async () => {
    const line = await Line.open(target)
    while (performance.now() < until) entries.push(await line.charge(next(), performance.now()))
    line.close()
  })
  await Promise.all(work)
  return entries
}

/** Charges at a steady rate, whether or not earlier ones are answered; each on a connection that is free. */
export async function chargeSteadily(
  target: Target,
  prefix: string,
  perSecond: number,
  seconds: number,
): Promise<Entry[]> {
  const next = customersOf(target, prefix)
  const free: Line[] = []
  const work: Promise<Entry>[] = []
  const send = async (due: number) => {
    const line = free.pop() ?? (await Line.open(target))
    const entry = await line.charge(next(), due)
    free.push(line)
    return entry
  }
  const begun = performance.now()
  while (work.length < perSecond * seconds) {
    const due = begun + (work.length * 1000) / perSecond
    const ahead = due - performance.now()
    // Looking at the clock each millisecond would take a tenth of a core from those who are measured.
    if (ahead > 0) await sleep(ahead)
    else work.push(send(due))
  }
  const entries = await Promise.all(work)
  for (const line of free) line.close()
  return entries
}

// One after the other: a customer's turn comes again when its last charge is long answered.
function customersOf({ customers, organizations }: Target, prefix: string): () => Customer {
  let turn = 0
  return () => {
    const n = 1 + (turn++ % customers)
    return { externalId: `${prefix} ${n}`, tenant: organizations[(n - 1) % organizations.length]! }
  }
}

interface Customer {
  externalId: string
  tenant: Tenant
}

/** One connection. */
class Line {
  readonly #socket: Socket
  readonly #target: Target
  #text = ''
  #answered: ((body: string) => void) | undefined
  #failed: ((error: Error) => void) | undefined

  private constructor(socket: Socket, target: Target) {
    this.#socket = socket
    this.#target = target
    socket.setNoDelay().setEncoding('latin1')
    socket.on('data', (text: string) => this.#take(text))
    socket.on('error', (error) => this.#failed?.(error))
    socket.on('close', () => this.#failed?.(new Error('The connection was closed before the answer.')))
  }

  static async open(target: Target): Promise<Line> {
    const { hostname, port } = new URL(target.url)
    const socket = connect({ host: hostname, port: Number(port) })
    await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
    return new Line(socket, target)
  }

  async charge(customer: Customer, due: number): Promise<Entry> {
    const trace = makeTrace()
    const answer = new Promise<string>((resolve, reject) => {
      this.#answered = resolve
      this.#failed = reject
    })
    this.#socket.write(requestOf(this.#target, customer, trace))
    const { order_id: orderId, checkout_status: status } = JSON.parse(await answer)
    return { trace, orderId, status, ms: performance.now() - due }
  }

  close(): void {
    this.#failed = undefined
    this.#socket.end()
  }

  #take(text: string): void {
    this.#text += text
    const head = this.#text.indexOf('\r\n\r\n')
    if (head < 0) return
    const length = Number(/content-length: (\d+)/i.exec(this.#text)![1])
    if (this.#text.length < head + 4 + length) return
    const [status, body] = [this.#text.slice(9, 12), this.#text.slice(head + 4)]
    this.#text = ''
    if (status === '200') this.#answered!(body)
    else this.#failed!(new Error(`${status}: ${body}`))
  }
}

/** Without long runs of digits, since the server's log masks what looks like a card number. */
function makeTrace(): string {
  return randomBytes(16)
    .toString('hex')
    .replaceAll(/(.{7})./g, '$1f')
}

function requestOf({ url, amount }: Target, { externalId, tenant }: Customer, trace: string): string {
  const body = `{"external_id":"${externalId}","amount":"${amount}","currency_code":"USD","idempotency_key":"${trace}"}`
  return [
    `POST /${tenant.id}/v1/payment/one_off_charge HTTP/1.1`,
    `host: ${new URL(url).host}`,
    `service-secret-key: ${tenant.key}`,
    'content-type: application/json',
    `content-length: ${body.length}`,
    `traceparent: 00-${trace}-${trace.slice(16)}-00`,
    '',
    body,
  ].join('\r\n')
}
