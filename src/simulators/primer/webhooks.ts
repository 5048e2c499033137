// The form of Primer's webhooks, signed with the endpoint's secret, and with the one before while that is kept.
import { createHmac } from 'node:crypto'
import type { Notice } from '../deliveries.ts'
import type { State } from './state.ts'

/** @param wallClockMs the receiver's time, not the dialect's */
export async function formWebhook(state: State, event: object, wallClockMs: number): Promise<Notice> {
  // The receiver may read the payment at once, so it must be on disk before.
  await state.durable()
  const { url, secret, rotated } = state.endpoint!
  const body = JSON.stringify({ ...event, signedAt: String(Math.floor(wallClockMs / 1000)) })
  const isRotating = rotated !== undefined && rotated.until_ms > state.nowMs()
  const headers = {
    'content-type': 'application/json',
    'x-signature-primary': signature(body, secret),
    ...(isRotating && { 'x-signature-secondary': signature(body, rotated.secret) }),
  }
  return { url, headers, body }
}

const signature = (body: string, secret: string) => createHmac('sha256', secret).update(body).digest('base64')
