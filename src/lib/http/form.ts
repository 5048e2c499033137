// Form-encoded bodies and query strings with brackets: `metadata[order]=7&expand[]=owner` and back.

export type FormValue =
  | string
  | number
  | boolean
  | readonly FormValue[]
  | { readonly [name: string]: FormValue | undefined }
export type Form = { [name: string]: FormField }
export type FormField = string | FormField[] | Form

/** Thrown by `decodeForm`; the message completes the sentence "The form …". */
export class FormError extends Error {}

/** Writes nested values as `a[b]=c`; lists as `a[0]=…`, or `a[]=…` when their items are scalars. Skips undefined. */
export function encodeForm(fields: { readonly [name: string]: FormValue | undefined }): string {
  const pairs: string[] = []
  for (const [name, value] of Object.entries(fields)) addPairs(pairs, encodeURIComponent(name), value)
  return pairs.join('&')
}

function addPairs(pairs: string[], name: string, value: FormValue | undefined): void {
  if (value === undefined) return
  if (typeof value !== 'object') {
    pairs.push(`${name}=${encodeURIComponent(String(value))}`)
  } else if (Array.isArray(value)) {
    for (const [n, item] of value.entries()) addPairs(pairs, `${name}[${typeof item === 'object' ? n : ''}]`, item)
  } else {
    for (const [key, item] of Object.entries(value)) addPairs(pairs, `${name}[${encodeURIComponent(key)}]`, item)
  }
}

/** Reads a form into nested objects without prototypes. Throws a `FormError` on bad encoding and on names that clash. */
export function decodeForm(text: string): Form {
  const form: Form = Object.create(null)
  for (const pair of text.split('&')) {
    if (pair === '') continue
    const at = pair.indexOf('=')
    const name = decode(at < 0 ? pair : pair.slice(0, at))
    setField(form, readPath(name), at < 0 ? '' : decode(pair.slice(at + 1)), name)
  }
  return form
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw new FormError('has a percent sign that encodes no character')
  }
}

/** `a[b][]` → ['a', 'b', '']. */
function readPath(name: string): string[] {
  const match = /^([^[\]]+)((?:\[[^[\]]*\])*)$/.exec(name)
  if (!match) throw new FormError(`has a name that cannot be read: ${name}`)
  return [match[1]!, ...[...match[2]!.matchAll(/\[([^\]]*)\]/g)].map(([, key]) => key!)]
}

function setField(form: Form, path: string[], value: string, name: string): void {
  let place: Form | FormField[] = form
  for (const [depth, key] of path.entries()) {
    const isLast = depth === path.length - 1
    const known = fieldAt(place, key)
    const next: FormField = isLast ? value : (known ?? newContainer(path[depth + 1]!))
    if (isLast ? known !== undefined : typeof next !== 'object') throw new FormError(`names ${name} twice`)
    if (!Array.isArray(place)) place[key] = next
    else if (known === undefined) place.push(next)
    place = next as Form | FormField[]
  }
}

/** The empty key of a list stands for a new item. */
function fieldAt(place: Form | FormField[], key: string): FormField | undefined {
  if (!Array.isArray(place)) return place[key]
  return key === '' ? undefined : place[Number(key)]
}

/** A list when the next key is empty or a small number, as in `items[0][price]`. */
function newContainer(key: string): FormField {
  return /^([0-9]{1,3})?$/.test(key) ? [] : Object.create(null)
}
