// Where a visitor came from and with what: the dimensions of a session, which figures are split by. They stay at an erasure.
import Bowser from 'bowser'
import { isJsonObject, JsonNumber, type JsonValue, readJson } from '../../lib/json/read.ts'
import type { Stored, Type } from './import/fields.ts'
import { readText } from './import/types.ts'

/** The dimensions, in the order of their columns. */
export const DIMENSIONS = [
  'source',
  'medium',
  'campaign',
  'content',
  'term',
  'referrer',
  'device',
  'browser',
  'os',
  'variant',
] as const
export type Dimension = (typeof DIMENSIONS)[number]

/** The column of a dimension: `source` alone is the file of a line in the tables of an import. */
export const columnOf = (dimension: Dimension) => `visit_${dimension}`

const MAX_CHARACTERS = 100

/** The field of a line. It is cut to 100 characters; what may be personal is left out. */
export const dimension = (name: Dimension): Type => ({
  column: columnOf(name),
  read: (value) => (name === 'referrer' ? hostOf(readText(value)) : clean(readText(value), name)),
})

/**
 * The dimensions that follow from the other fields of a session. The parameters of the URL win over those in `origin`, which may
 * be the same ones.
 */
export function visitOf(session: Record<'query_params' | 'origin' | 'user_agent', Stored>): Visit {
  const inUrl = parametersOfUrl(session.origin)
  const given = parametersOf(session.query_params)
  const unmarked = unmarkedOf(session.user_agent)
  if (inUrl === NONE && given === NONE) return unmarked
  const parameters = { ...inUrl, ...given }
  const of = (name: Dimension, ...names: string[]) => {
    const found = names.map((one) => parameters[one]).find((text) => text !== undefined && text.trim() !== '')
    return found === undefined ? null : name === 'referrer' ? hostOf(found) : clean(found, name)
  }
  const marks = ['source', 'medium', 'campaign', 'content', 'term'] as const
  const utm = Object.fromEntries(marks.map((name) => [name, of(name, `utm_${name}`)])) as Record<
    (typeof marks)[number],
    Stored
  >
  return {
    ...unmarked,
    ...utm,
    referrer: of('referrer', 'referrer', 'referer'),
    variant: of('variant', 'variant', 'utm_variant'),
  }
}

type Visit = Readonly<Record<Dimension, Stored>>
type Parameters = Record<string, string | undefined>
const NONE: Parameters = {}

function parametersOf(json: Stored): Parameters {
  if (typeof json !== 'string' || json === '{}') return NONE
  // The number of a campaign may have more digits than a float.
  const value = readJson(json, { exact: true })
  if (!isJsonObject(value)) return NONE
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, firstText(one)]))
}

/** A parameter that is repeated in a URL is a list: its first value counts, here and in `parametersOfUrl`. */
function firstText(value: JsonValue): string | undefined {
  const one = Array.isArray(value) ? value[0] : value
  if (one instanceof JsonNumber) return one.text
  return typeof one === 'string' ? one : typeof one === 'number' ? String(one) : undefined
}

function parametersOfUrl(origin: Stored): Parameters {
  if (typeof origin !== 'string' || !origin.includes('?')) return NONE
  return URL.canParse(origin) ? Object.fromEntries([...new URL(origin).searchParams].reverse()) : NONE
}

/** The host of a URL, or a host alone, without `www.`. */
function hostOf(text: string): string | null {
  const url = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text}`
  const host = URL.canParse(url) ? new URL(url).hostname.replace(/^www\./, '') : ''
  return host === '' || !/[a-z]/.test(host) ? null : host.slice(0, MAX_CHARACTERS)
}

const AT_SIGN = /@|%40/
const PHONE = /^(\+|00)[\d\s().\-/]{6,}$/
const SPACED_PHONE = /^[\d(][\d\s().\-/]{5,}\d$/
const UUID = /[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}/i
const JSON_WEB_TOKEN = /^ey[\w-]+\.[\w-]+/
// As long as the shortest click ids of advertising networks.
const TOKEN_CHARACTERS = 16
// Advertising networks have numbers for these.
const NUMBERED: readonly Dimension[] = ['campaign', 'content', 'term']

/** A text of at most 100 characters; null for what looks like an e-mail address, a phone number or a token, and for nothing. */
export function clean(given: string, name: Dimension): string | null {
  const text = given
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced.
    .replace(/[\u0000-\u001f\u007f\s]+/g, ' ')
    .trim()
  if (text === '' || AT_SIGN.test(text) || isPhone(text, name) || isToken(text)) return null
  return [...text].slice(0, MAX_CHARACTERS).join('').trim()
}

function isPhone(text: string, name: Dimension): boolean {
  const digits = text.replace(/\D/g, '').length
  if (digits < 7) return false
  if (PHONE.test(text)) return true
  if (!SPACED_PHONE.test(text)) return false
  // A date has no more than 8 digits: 2026-11-25.
  return /^\d+$/.test(text) ? !NUMBERED.includes(name) : digits > 8
}

/** A long word in which letters and digits are mixed, as in ids of clicks and sessions, and in keys. */
function isToken(text: string): boolean {
  if (UUID.test(text) || JSON_WEB_TOKEN.test(text)) return true
  return text
    .split(/[^a-z0-9]+/i)
    .some((word) => word.length >= TOKEN_CHARACTERS && (word.match(/\d(?=[a-z])|[a-z](?=\d)/gi)?.length ?? 0) >= 2)
}

const UNKNOWN = Object.fromEntries(DIMENSIONS.map((name) => [name, null])) as Visit
const DEVICES = ['mobile', 'tablet', 'desktop', 'bot']

// Many sessions have the same few user agents, and reading one takes longer than the rest of its line.
const KNOWN = new Map<string, Visit>()
const MAX_KNOWN = 2000

/** The visit with this program and without campaign. */
function unmarkedOf(userAgent: Stored): Visit {
  if (typeof userAgent !== 'string' || userAgent === '') return UNKNOWN
  const known = KNOWN.get(userAgent)
  if (known) return known
  const { platform, browser, os } = Bowser.parse(userAgent)
  const device = platform.type ?? ''
  const found: Visit = {
    ...UNKNOWN,
    device: DEVICES.includes(device) ? device : null,
    browser: clean(browser.name ?? '', 'browser'),
    os: clean(os.name ?? '', 'os'),
  }
  if (KNOWN.size >= MAX_KNOWN) KNOWN.clear()
  KNOWN.set(userAgent, found)
  return found
}
