// Sends a message by SMTP.
import { createTransport } from 'nodemailer'
import type { Outcome } from '../../core/events/send.ts'
import { hideSecrets } from '../../lib/hide-secrets.ts'
import type { MailSettings } from '../../lib/mail-settings.ts'

// How long the mail server may take until it greets.
const CONNECT_MS = 10_000
// How long all of its replies may take. The last one may be late, because the server examines the mail first; without it a mail that was
// accepted would be sent again. A server that sends a line now and then would hold up all other messages, and after the lease of the queue
// another process would send the mail too.
const DEADLINE_MS = 60_000

interface Mail {
  /** The same at every attempt, so that a mail that arrived twice is recognized. */
  id: string
  title: string
  lines: string[]
  url: string | undefined
}

interface Limits {
  deadlineMs?: number
  /** Ends the attempt, because this process stops. */
  signal?: AbortSignal | undefined
}

/** Never throws: every failure is an outcome. No reply of the server is kept, which may repeat the address. */
export async function sendMail(
  settings: MailSettings | undefined,
  to: string,
  { id, title, lines, url }: Mail,
  { deadlineMs = DEADLINE_MS, signal: stop }: Limits = {},
): Promise<Omit<Outcome, 'answer'>> {
  if (!settings) return failed('No mail server is set: SMTP_URL and SMTP_FROM.')
  const { url: server, from } = settings
  const connecting = { connectionTimeout: CONNECT_MS, greetingTimeout: CONNECT_MS, dnsTimeout: CONNECT_MS }
  const transport = createTransport({
    url: server,
    ...connecting,
    socketTimeout: deadlineMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  try {
    const text = [...lines.map(hideSecrets), ...(url === undefined ? [] : ['', url])].join('\n')
    const domain = new URL(server).hostname
    const headers = { 'Auto-Submitted': 'auto-generated' }
    const messageId = `<${id}@${domain}>`
    const signal = AbortSignal.any([AbortSignal.timeout(deadlineMs), ...(stop ? [stop] : [])])
    // Both as objects: the library reads a text by the syntax of headers, in which a part in parentheses is a comment, and one before
    // a colon the name of a group.
    const recipient = { name: '', address: to }
    await transport.sendMail({ from, to: recipient, subject: title, text, messageId, headers, signal })
    return { status: 250, error: undefined, retryAfter: undefined }
  } catch (error) {
    return failed(reason(error as MailError))
  } finally {
    transport.close()
  }
}

const failed = (error: string) => ({ status: undefined, error, retryAfter: undefined })

const SENTENCES: Readonly<Record<string, string>> = {
  ESOCKET: 'The mail server cannot be reached.',
  ECONNECTION: 'The mail server cannot be reached.',
  EDNS: 'The host name of the mail server is unknown.',
  ETIMEDOUT: 'The mail server did not respond in time.',
  EABORT: 'The mail server did not respond in time.',
  EAUTH: 'The mail server rejects the user name or the password of SMTP_URL.',
  ETLS: 'The connection to the mail server could not be encrypted.',
  EENVELOPE: 'The mail server rejects the address.',
  EMESSAGE: 'The mail server rejects the message.',
  EPROTOCOL: 'The mail server refuses the connection.',
}

// Authentication is missing or, if the response says so, STARTTLS.
const REQUIRED_FIRST = 530

interface MailError {
  code?: string
  /** The code of the system, where `code` is that of the library. */
  originalCode?: string
  responseCode?: number
  response?: string
}

// Of TLS and of certificates, as `CERT_HAS_EXPIRED`; those of connections have no underscore, but one of look-ups has: `EAI_AGAIN`.
const isOfTls = (code = '') => /^(?!EAI).*_/.test(code)

function reason({ code, originalCode, responseCode, response = '' }: MailError): string {
  const isRequired = responseCode === REQUIRED_FIRST
  if (isRequired && !/STARTTLS/i.test(response))
    return 'The mail server wants a user name and a password in SMTP_URL (530).'
  const [key, detail] = isOfTls(originalCode)
    ? ['ETLS', originalCode]
    : [isRequired ? 'ETLS' : (code ?? ''), responseCode]
  const sentence = SENTENCES[key] ?? `The message could not be handed to the mail server (${code ?? 'no code'}).`
  return detail === undefined ? sentence : `${sentence.slice(0, -1)} (${detail}).`
}
