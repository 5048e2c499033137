// Where people are on a page: what has the focus, how far it is scrolled, and which page of the navigation is shown.

/** Scrolls the navigation to the page that is shown, which may be below its edge. */
function showCurrent() {
  const current = document.querySelector('.side .wide [aria-current]')
  const side = current?.offsetParent?.closest('.side')
  if (side && current.offsetTop + current.offsetHeight > side.scrollTop + side.clientHeight)
    side.scrollTop = current.offsetTop - side.clientHeight / 2
}

/** Moves the focus to a text, so that screen readers read it and Tab goes on behind it. */
function focusText(one) {
  one.tabIndex = -1
  one.focus({ preventScroll: true })
}

/** What became of a form is read first, unless a field has the focus. */
function focusOutcome() {
  const outcome = document.querySelector('main > :is(.done, .failed)')
  if (outcome && !document.querySelector('[autofocus]')) focusText(outcome)
}

const sections = () => [...document.querySelectorAll('main section')]

// A boosted link or form replaces the body of the same document, and with it what had the focus. A filter of a list and the link to its
// next page lead to the same part of the page again, and not to its top.
let left = {}
document.addEventListener('htmx:beforeSwap', ({ detail: { boosted, requestConfig } }) => {
  if (!boosted) return
  const section = requestConfig.elt.closest('main section')
  left = {
    path: location.pathname,
    field: document.activeElement?.name,
    table: section?.querySelector('[id]')?.id,
    section: section && sections().indexOf(section),
  }
})

function goOn() {
  const isSame = left.path === location.pathname
  const section = isSame && (document.getElementById(left.table)?.closest('section') ?? sections()[left.section])
  if (section) section.scrollIntoView()
  if (document.activeElement !== document.body) return
  const field = isSame && left.field && document.querySelector(`main select[name="${CSS.escape(left.field)}"]`)
  if (field) field.focus({ preventScroll: true })
  else focusText(section ? section.querySelector('h2') : document.querySelector('h1'))
}

// In the next frame, because htmx scrolls to the top after this event.
document.addEventListener('htmx:afterSettle', ({ detail: { boosted } }) => {
  if (boosted) requestAnimationFrame(goOn)
})

// Forms that lie over the page lie over each other too: the one that is opened closes the others. That of a table row may begin beyond the
// edge of a narrow screen.
document.addEventListener('click', ({ target }) => {
  const opened = target.closest?.('summary')?.parentElement
  for (const other of opened?.closest('.row, .period')?.querySelectorAll(':scope > details[open]') ?? [])
    if (other !== opened) other.open = false
  if (opened?.matches('td .action-form:not([open])'))
    requestAnimationFrame(() => opened.scrollIntoView({ block: 'nearest', inline: 'nearest' }))
})

globalThis.places = { showCurrent, focusOutcome }
