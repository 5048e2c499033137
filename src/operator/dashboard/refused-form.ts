// The form that a refused action came from, with what was typed into it: the error page shows it again, so that nothing is typed twice, and
// says what is wrong in the words of the form.
import { SHOWN } from './forms.ts'
import { Html, html, textOf } from './html.ts'
import { IN_WRONG_ORDER } from './period.ts'

/** Set while the page with the form is made again for it. */
export interface RefusedForm {
  /** The path that the form was sent to. */
  path: string
  /** The page with the form. */
  page: string
  /** The parameter that was refused, if the form is one of filters. */
  filter?: string
  typed: URLSearchParams
  /** The form once the page has made it. */
  found?: Html
}

/**
 * The filters of a page, of which the sentence names the refused one first, or its days if they are in the wrong order; undefined if it
 * names none. The page is that without it.
 */
export function refusedFilters(url: string, sentence: string): RefusedForm | undefined {
  const [path = '/', search = ''] = url.split('?', 2)
  const typed = new URLSearchParams(search)
  const [filter = ''] = sentence === IN_WRONG_ORDER ? ['from'] : (/^\w+/.exec(sentence) ?? [])
  if (!typed.has(filter)) return undefined
  const others = new URLSearchParams(search)
  others.delete(filter)
  return { path, page: `${path}?${others}`, typed, filter }
}

/** Keeps the form if it is the one that was refused; returns it as it is. */
export function keptIfRefused({ refused }: { refused: RefusedForm | undefined }, action: string, form: Html): Html {
  if (refused && !refused.found && action.split('?')[0] === refused.path && isOf(form, refused))
    refused.found = filled(form, refused)
  return form
}

const INPUTS = /<input\b[^>]*>/g
const SELECTS = /<select name="([^"]*)"[^>]*>.*?<\/select>/gs
// The form has a new one: the refused request may have used up the other.
const IDEMPOTENCY_KEY = 'idempotency_key'

/** Forms of several objects can be sent to one path. Their hidden fields say which object is meant. */
const isOf = ({ text }: Html, { typed, filter }: RefusedForm): boolean =>
  filter !== undefined
    ? text.includes(` name="${filter}"`)
    : (text.match(INPUTS) ?? [])
        .map((input) => ({
          type: attribute(input, 'type'),
          name: attribute(input, 'name'),
          value: attribute(input, 'value'),
        }))
        .every(
          ({ type, name, value }) =>
            type !== 'hidden' || name === IDEMPOTENCY_KEY || name === SHOWN || value === typed.get(name),
        )

/** The form open and with what was typed; secrets must be typed again. */
function filled({ text }: Html, { typed, page, filter }: RefusedForm): Html {
  const chosen = (tag: string, name: string, word: string) =>
    typed.getAll(name).includes(attribute(tag, 'value')) ? tag.replace(/>$/, ` ${word}>`) : tag
  const open = text
    .replace('<details', '<details open')
    .replace(INPUTS, (input) => {
      const [name, type] = [attribute(input, 'name'), attribute(input, 'type')]
      if (type === 'checkbox') return chosen(input.replace(' checked', ''), name, 'checked')
      if ((type === 'hidden' && name !== SHOWN) || type === 'password' || !typed.has(name)) return input
      return input.replace(/ value="[^"]*"/, () => html` value="${typed.get(name)}"`.text)
    })
    .replace(SELECTS, (select, name: string) =>
      select.replace(/<option[^>]*>/g, (option) => chosen(option.replace(' selected', ''), name, 'selected')),
    )
  if (filter !== undefined) return new Html(open)
  return new Html(
    open.replace('</form>', () => `${html`<input type="hidden" name="back" value="${page}">`.text}</form>`),
  )
}

const LABELED = /<label class="field"><span>(.*?)<\/span><(?:input|select)\b[^>]*? name="([^"]*)"/g

/**
 * The sentence of a refusal with the labels of the form instead of the names that the API has for its fields: `“Rate limit” must be …`
 * for `rate_limit must be …`. A name of one word is a word of other sentences too, and so is only replaced where it begins one.
 */
export function inLabels(form: Html | undefined, sentence: string): string {
  const labels = [...(form?.text ?? '').matchAll(LABELED)].map(([, label, name]) => [name!, textOf(new Html(label!))])
  return labels.reduce((text, [name, label]) => {
    const place = name!.includes('_') ? '(?<![\\w"])' : '^'
    return text.replace(new RegExp(`${place}${name}(\\[\\d+\\])?(?![\\w"])`, 'g'), () => `“${label}”`)
  }, sentence)
}

/** The value of an attribute of a tag that `html` wrote; empty if it has none. */
const attribute = (tag: string, name: string): string =>
  textOf(new Html(new RegExp(` ${name}="([^"]*)"`).exec(tag)?.[1] ?? ''))
