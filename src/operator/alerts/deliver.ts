// Sends messages that are due: each to its webhook, chat service or e-mail address.
import { openAddress } from '../../core/events/alert-addresses.ts'
import { type Resolve, send } from '../../core/events/send.ts'
import { deliveryHeaders } from '../../core/events/signature.ts'
import { signingKeys } from '../../core/events/signing-keys.ts'
import { hideSecrets } from '../../lib/hide-secrets.ts'
import { isUnavailable } from '../../lib/pg/errors.ts'
import { instantFromPg } from '../../lib/time.ts'
import type { Content } from './content.ts'
import { digestContent } from './digest.ts'
import { giveBack, type Result, settle, type Taken, take } from './queue.ts'
import { readState, type Shared } from './state.ts'

// A receiver has this long to respond.
const DEADLINE_MS = 10_000

/** Sends all messages that are due. One that fails does not stop the others. */
export async function deliverDue(app: Shared, resolve: Resolve, signal?: AbortSignal): Promise<void> {
  for (;;) {
    const taken = signal?.aborted ? [] : await take(app.db)
    if (taken.length === 0) return
    await Promise.all(taken.map((one) => deliver(app, one, resolve, signal)))
  }
}

async function deliver(app: Shared, taken: Taken, resolve: Resolve, signal?: AbortSignal): Promise<void> {
  const outcome = await attempt(app, taken, { resolve, signal }).catch((error) => {
    if (isUnavailable(error)) throw error
    app.log.error({ err: error, project_id: taken.projectId }, 'A message of an alert could not be sent.')
    return failure('The message could not be written: see the log.')
  })
  if (signal?.aborted && outcome.status === undefined) return giveBack(app.db, taken)
  await settle(app.db, taken, outcome)
}

const failure = (error: string): Result => ({ status: undefined, error, retryAfter: undefined })

interface Sending {
  resolve: Resolve
  signal: AbortSignal | undefined
}

async function attempt(app: Shared, taken: Taken, { resolve, signal }: Sending): Promise<Result> {
  const { projectId, destination } = taken
  let address: string
  try {
    address = openAddress(app.seal, projectId, destination.id, destination.address)
  } catch {
    return failure('The address was sealed under another master key: set the destination again.')
  }
  const content = await contentOf(app, taken)
  const url = app.config.dashboardUrl === undefined ? undefined : app.config.dashboardUrl + content.path
  if (destination.kind === 'email') {
    // Loaded here, because the library for mail takes a tenth of a start, and most processes send none.
    const { sendMail } = await import('./mail.ts')
    return sendMail(app.config.mail, address, { ...content, url, id: taken.id }, { signal })
  }
  const { webhookAllowPrivate: allowPrivate } = app.config
  const options = { allowPrivate, resolve, deadlineMs: DEADLINE_MS, ...(signal && { signal }) }
  if (destination.kind === 'slack')
    return send(address, JSON_TYPE, JSON.stringify({ text: slackText(content, url) }), options)
  const keys = (await signingKeys(app, new Set([projectId]))).get(projectId)
  if (!keys) return failure('The secret key of the project cannot be decrypted: run "tundish doctor".')
  if (keys.length === 0) return failure('The project has no secret key to sign with.')
  const body = JSON.stringify(webhookBody(taken, content, url))
  return send(address, deliveryHeaders(taken.id, taken.takenAt, body, keys), body, options)
}

const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8', 'user-agent': 'Tundish-Alerts/1' }

async function contentOf(app: Shared, taken: Taken): Promise<Content> {
  if (taken.content !== null) return JSON.parse(taken.content) as Content
  const state = await readState(app.db, taken.projectId)
  const content = await digestContent(app, state!)
  return { ...content, lines: ['Sent by an operator.', ...content.lines] }
}

/** The body of a webhook; the same at every attempt, unless an operator sends it now. */
const webhookBody = ({ id, kind, projectId, day, createdAt }: Taken, content: Content, url: string | undefined) => ({
  id,
  type: `alert.${kind}`,
  created_at: instantFromPg(createdAt),
  project_id: projectId,
  day,
  title: content.title,
  lines: content.lines.map(hideSecrets),
  ...(url !== undefined && { url }),
  data: content.data ?? {},
})

/** Three characters have a meaning in the text of Slack: links and mentions are made of them. */
const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

const slackText = ({ title, lines }: Content, url: string | undefined): string =>
  [
    `*${escaped(title)}*`,
    ...lines.map((line) => escaped(hideSecrets(line))),
    ...(url === undefined ? [] : [`<${url}|Open the dashboard>`]),
  ].join('\n')
