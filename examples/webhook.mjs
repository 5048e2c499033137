// Receives events, and verifies that they are genuine: WEBHOOK_SECRET=whsec_… PORT=3000 node webhook.mjs
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'

function stop(why) {
  console.error(why)
  process.exit(1)
}
const { WEBHOOK_SECRET, PORT = '3000' } = process.env
if (!WEBHOOK_SECRET?.startsWith('whsec_')) stop('Set WEBHOOK_SECRET to the webhook_secret of the project: whsec_…')
const key = Buffer.from(WEBHOOK_SECRET.replace('whsec_', ''), 'base64')

function isGenuine({ 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': given = '' }, body) {
  // An old request may be one that an attacker recorded.
  if (!(Math.abs(Date.now() / 1000 - Number(at)) < 300)) return false
  const own = Buffer.from(`v1,${createHmac('sha256', key).update(`${id}.${at}.${body}`).digest('base64')}`)
  const all = given.split(' ').map((one) => Buffer.from(one))
  return all.some((one) => one.length === own.length && timingSafeEqual(one, own))
}

const server = createServer(async (request, response) => {
  let body = ''
  try {
    for await (const part of request.setEncoding('utf8')) body += part
  } catch {
    return // The sender broke off.
  }
  if (!isGenuine(request.headers, body)) return response.writeHead(401).end()
  const { id, type, data } = JSON.parse(body)
  // An event may come twice: store its id with your change, in one transaction, and ignore it the second time.
  console.log(id, type, data.id ?? data.order_id ?? '')
  response.writeHead(204).end()
})
server.on('error', ({ message }) => stop(message))
server.listen(Number(PORT), '127.0.0.1', () => console.log('listening on', server.address().port))
