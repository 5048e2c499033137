// Keeps a form that was sent after its session had ended: after the sign-in its page has what was typed. In this tab only, and no secrets.

const KEPT = 'tundish-form'

const isSecret = ({ type, dataset }) => type === 'password' || dataset.secret !== undefined
const isTyped = (field) => field.name && !['hidden', 'submit', 'button'].includes(field.type) && !isSecret(field)

/** What tells the form from others that are sent to the same path. The server makes the two left out anew. */
const identityOf = (form) =>
  JSON.stringify([
    form.getAttribute('action'),
    [...form.elements]
      .filter(({ type, name }) => type === 'hidden' && name !== 'idempotency_key' && name !== 'back')
      .map(({ name, value }) => [name, value]),
  ])

document.addEventListener('submit', ({ target: form, defaultPrevented }) => {
  if (form.method !== 'post' || !form.closest('main') || defaultPrevented) return
  const typed = [...form.elements].filter(isTyped).map(({ name, value, checked }) => ({ name, value, checked }))
  if (typed.length > 0) sessionStorage.setItem(KEPT, JSON.stringify({ identity: identityOf(form), typed }))
})

/** Fills the form of the page, or forgets what was typed if the form was sent, or if people went on to another page. */
function fillKept() {
  const kept = JSON.parse(sessionStorage.getItem(KEPT))
  if (!kept) return
  const note = document.querySelector('[data-kept]')
  if (note) {
    note.hidden = false
    sessionStorage.setItem(KEPT, JSON.stringify({ ...kept, isUnsent: true }))
  }
  // The sign-in has no navigation.
  if (note || (kept.isUnsent && !document.querySelector('header.side'))) return
  sessionStorage.removeItem(KEPT)
  const form =
    kept.isUnsent && [...document.querySelectorAll('main form')].find((one) => identityOf(one) === kept.identity)
  if (form) fill(form, kept.typed)
}

function fill(form, typed) {
  for (const [n, field] of [...form.elements].filter(isTyped).entries()) {
    const { name, value, checked } = typed[n] ?? {}
    if (name !== field.name || (field.type === 'checkbox' && value !== field.value)) continue
    if (field.type === 'checkbox') field.checked = checked
    else field.value = value
  }
  const hasSecret = [...form.elements].some(isSecret)
  const said = document.createElement('p')
  said.className = 'note'
  said.textContent = `This is what you typed. It was not sent.${hasSecret ? ' Type secrets again.' : ''}`
  form.prepend(said)
  const details = form.closest('details')
  if (details) details.open = true
  said.tabIndex = -1
  said.focus()
}

globalThis.keptForm = { fill: fillKept }
