// Clients that charge, with a minimal HTTP client over kept-alive sockets, so that they use little CPU of the measured machine.
import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** A charge as its client saw it. */
export interface Entry {
  /** Its trace id, by which the times of the server and the provider are found. */
  trace: string
  orderId: string
  status: string
  /** From when it was due to the end of its response, so that waiting to be sent counts too. */
  ms: number
}

export interface Tenant {
  id: string
  key: string
}

export interface Target {
  url: string
  /** The customers are distributed round-robin; the first organization has customer 1. */
  organizations: Tenant[]
  amount: string
  /** How many customers there are; their external_id is the prefix, a space and a number from 1. */
  customers: number
}

/** Charges over this many connections, on each as soon as the previous charge has its response. */
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
    const line = await Line.open(target.url)
    while (performance.now() < until) entries.push(await line.charge(target, next(), performance.now()))
    line.close()
  })
  await Promise.all(work)
  return entries
}

/** Charges at a steady rate, whether or not earlier charges have their responses; each on a free connection. */
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
    const line = free.pop() ?? (await Line.open(target.url))
    const entry = await line.charge(target, next(), due)
    free.push(line)
    return entry
  }
  const begun = performance.now()
  while (work.length < perSecond * seconds) {
    const due = begun + (work.length * 1000) / perSecond
    const ahead = due - performance.now()
    // Polling the clock each millisecond would take a tenth of a core from the measured programs.
    if (ahead > 0) await sleep(ahead)
    else work.push(send(due))
  }
  const entries = await Promise.all(work)
  for (const line of free) line.close()
  return entries
}

// Round-robin, so that the previous charge of a customer has ended long before the next.
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

/** One connection, for one request at a time. */
export class Line {
  readonly #socket: Socket
  #text = ''
  #onResponse: ((body: string) => void) | undefined
  #onError: ((error: Error) => void) | undefined

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay().setEncoding('latin1')
    socket.on('data', (text: string) => this.#receive(text))
    socket.on('error', (error) => this.#onError?.(error))
    socket.on('close', () => this.#onError?.(new Error('The connection was closed before the response.')))
  }

  static async open(url: string): Promise<Line> {
    const { hostname, port } = new URL(url)
    const socket = connect({ host: hostname, port: Number(port) })
    await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
    return new Line(socket)
  }

  /** Sends a request, and returns the body of its response. */
  send(request: string): Promise<string> {
    const response = new Promise<string>((resolve, reject) => {
      this.#onResponse = resolve
      this.#onError = reject
    })
    this.#socket.write(request)
    return response
  }

  async charge(target: Target, customer: Customer, due: number): Promise<Entry> {
    const trace = makeTrace()
    const response = await this.send(requestOf(target, customer, trace))
    const { order_id: orderId, checkout_status: status } = JSON.parse(response)
    return { trace, orderId, status, ms: performance.now() - due }
  }

  close(): void {
    this.#onError = undefined
    this.#socket.end()
  }

  #receive(text: string): void {
    this.#text += text
    const head = this.#text.indexOf('\r\n\r\n')
    if (head < 0) return
    const length = Number(/content-length: (\d+)/i.exec(this.#text)![1])
    if (this.#text.length < head + 4 + length) return
    const status = this.#text.slice(9, 12)
    const body = this.#text.slice(head + 4)
    this.#text = ''
    if (status === '200') this.#onResponse!(body)
    else this.#onError!(new Error(`${status}: ${body}`))
  }
}

/** Without long runs of digits, because the server's log masks card numbers. */
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
