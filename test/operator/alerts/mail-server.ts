// A mail server on 127.0.0.1 that keeps the mails it receives, and refuses them or holds them up when a test says so.

import type { AddressInfo } from 'node:net'
import { createServer, type Socket } from 'node:net'

export interface Mail {
  to: string
  /** Headers and text as they were sent. */
  data: string
}

interface State {
  refuses: boolean
  stalls: boolean
  /** Called when a mail is held up by `stalls`. */
  onStall?: (() => void) | undefined
  /** How long it examines a mail that it has taken before it says so. */
  examinesMs: number
  asksForPassword?: boolean
  wantsTls?: boolean
  isBusy?: boolean
}

export async function startMailServer() {
  const mails: Mail[] = []
  const state: State = { refuses: false, stalls: false, examinesMs: 0 }
  const server = createServer((socket) => talk(socket, mails, state))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    mails,
    state,
    url: `smtp://user:mail-password@127.0.0.1:${port}`,
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
}

/** As much of SMTP (RFC 5321) as a client needs that authenticates and sends one mail. */
function talk(socket: Socket, mails: Mail[], state: State): void {
  let [received, to, data] = ['', '', undefined as string | undefined]
  const say = (line: string) => socket.write(`${line}\r\n`)
  const take = (line: string) => {
    if (data !== undefined) {
      if (line !== '.') {
        data += `${line}\n`
        return
      }
      mails.push({ to, data })
      data = undefined
      setTimeout(() => say('250 kept'), state.examinesMs)
      return
    }
    const verb = line.slice(0, 4).toUpperCase()
    if (verb === 'EHLO') say('250-here\r\n250 AUTH PLAIN')
    else if (verb === 'AUTH') say('235 welcome')
    else if (verb === 'MAIL' && state.stalls) {
      // A reply that never ends, of which a line comes now and then.
      const timer = setInterval(() => say('250-wait'), 50)
      socket.on('close', () => clearInterval(timer))
      state.onStall?.()
    } else if (verb === 'MAIL' && state.asksForPassword) say('530 5.7.0 Authentication Required')
    else if (verb === 'MAIL' && state.wantsTls) say('530 5.7.0 Must issue a STARTTLS command first')
    else if (verb === 'MAIL') say(state.refuses ? '451 not now, someone@example.com' : '250 ok')
    else if (verb === 'RCPT') {
      to = /<(.*)>/.exec(line)![1]!
      say('250 ok')
    } else if (verb === 'DATA') {
      data = ''
      say('354 go on')
    } else if (verb === 'QUIT') socket.end('221 bye\r\n')
    else say('250 ok')
  }
  socket.setEncoding('utf8')
  socket.on('error', () => {})
  socket.on('data', (chunk) => {
    const lines = (received + chunk).split('\r\n')
    received = lines.pop()!
    for (const line of lines) take(line)
  })
  say(state.isBusy ? '421 too many connections' : '220 here')
}
