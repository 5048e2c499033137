// The pages of the quiz, in plain HTML.

const ENTITIES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const escaped = (text) => String(text).replace(/[&<>"]/g, (one) => ENTITIES[one])

const page = (title, content) => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escaped(title)}</title>
<style>body{font:1.1rem/1.5 system-ui,sans-serif;max-width:26rem;margin:3rem auto;padding:0 1rem}
button,input{font:inherit;display:block;width:100%;box-sizing:border-box;padding:.7rem;margin:.5rem 0}</style>
</head><body><main><h1>${escaped(title)}</h1>
${content}
</main></body></html>`

const form = (action, button, fields = '') =>
  `<form method="post" action="${action}">${fields}<button>${button}</button></form>`
const hidden = (name, value) => `<input type="hidden" name="${name}" value="${escaped(value)}">`

export const questionPage = ({ text, options }) =>
  page(text, options.map((value) => form('/answer', escaped(value), hidden('value', value))).join('\n'))

export const emailPage = () =>
  page(
    'Where may we send your plan?',
    form('/email', 'Continue', '<label>E-mail <input name="email" type="email" required></label>'),
  )

export const payPage = () => page('Your sleep plan', `<p>$19.99 a month.</p>${form('/pay', 'Go to checkout')}`)

/** `key` is the idempotency key of the form's request: however often it is sent, it is done once. */
export function accountPage({ tokens, order, isRefunded, key }) {
  const forms = [
    form('/pack', 'Buy 100 tokens for $4.99', hidden('key', `pack-${key}`)),
    form('/lesson', 'Take a lesson (10 tokens)', hidden('key', `lesson-${key}`)),
    ...(order && !isRefunded ? [form('/refund', 'Refund the tokens')] : []),
    form('/erase', 'Delete my data'),
  ]
  return page(
    'Your account',
    `<p>You have <strong id="tokens">${escaped(tokens)}</strong> tokens.</p>${forms.join('\n')}`,
  )
}

export const messagePage = (text) => page(text, '<p><a href="/">Back</a></p>')
