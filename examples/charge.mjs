// Charges a saved card once: node charge.mjs CUSTOMER AMOUNT CURRENCY KEY. The same KEY never charges twice.
const { TUNDISH_URL, ORGANIZATION, ORGANIZATION_KEY } = process.env
const [external_id, amount, currency_code, idempotency_key] = process.argv.slice(2)
if (!TUNDISH_URL || !ORGANIZATION || !ORGANIZATION_KEY || !idempotency_key) {
  console.error('Set TUNDISH_URL, ORGANIZATION and ORGANIZATION_KEY: node charge.mjs CUSTOMER AMOUNT CURRENCY KEY')
  process.exit(1)
}

for (let attempt = 1; ; attempt++) {
  const response = await fetch(`${TUNDISH_URL}/${ORGANIZATION}/v1/payment/one_off_charge`, {
    method: 'POST',
    headers: { 'service-secret-key': ORGANIZATION_KEY, 'content-type': 'application/json' },
    body: JSON.stringify({ external_id, amount, currency_code, idempotency_key }),
  }).catch(() => undefined)
  // Without a whole response, at 429 and at 5xx, the charge may have been made: send the same request again.
  const isOpen = !response || response.status === 429 || response.status >= 500
  const body = isOpen ? undefined : await response.json().catch(() => undefined)
  if (body && body.checkout_status !== 'processing') {
    console.log(response.status, body.checkout_status ?? body.message, body.order_id ?? '')
    process.exit(body.checkout_status === 'succeeded' ? 0 : 1)
  }
  if (attempt === 10) {
    console.error('No outcome yet: run it again later with the same key.')
    process.exit(1)
  }
  await new Promise((resolve) => setTimeout(resolve, 2000))
}
