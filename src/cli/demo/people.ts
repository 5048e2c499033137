// The demo's people: each a profile with one to three visits of a funnel and the replies given there.
import { DAY_MS } from '../../lib/days.ts'
import type { Random } from '../../lib/seeded-random.ts'
import { EXPERIMENTS, FUNNELS, type Funnel } from './catalogue.ts'
import { PLACES, type Place } from './places.ts'
import { recordId } from './random.ts'

export interface Line {
  record: string
  data: object
}

export interface Visit {
  id: string
  ms: number
  funnel: Funnel
  experiment: string | null
}

export interface Person {
  id: string
  place: Place
  email: string | null
  visits: Visit[]
  lines: Line[]
}

const HISTORY_DAYS = 730
const NETWORKS = ['192.0.2', '198.51.100', '203.0.113']
const HOSTS = ['example.com', 'example.org', 'example.net']
const HANDLES = 'nightowl moonwalker early.bird daydreamer teatime longsleeper quiet.hours sunnyside'.split(' ')
const BROWSERS = [
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1',
  'Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/137.0.0.0 Mobile Safari/537.36',
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:139.0) Gecko/20100101 Firefox/139.0',
]
/** Where visitors come from. What was spent on a campaign is so many US dollars a visit. */
export const CAMPAIGNS: Readonly<Record<string, { source: string; medium: string; dollars: number }>> = {
  autumn: { source: 'meta', medium: 'paid_social', dollars: 11 },
  brand: { source: 'google', medium: 'cpc', dollars: 6 },
  newsletter: { source: 'newsletter', medium: 'email', dollars: 0 },
}
const SHARES = Object.fromEntries(PLACES.map(({ country, share }) => [country, share]))
const FUNNEL_SHARES = Object.fromEntries(FUNNELS.map(({ id, share }) => [id, share]))

export const iso = (ms: number) => new Date(ms).toISOString()

/** The `n`th person, whose first visit was within the two years before `now`. */
export function makePerson(random: Random, n: number, now: number): Person {
  const country = random.weighted(SHARES)
  const place = PLACES.find((one) => one.country === country)!
  // Traffic grows: the square root favours recent days.
  const firstMs = Math.floor(
    now - DAY_MS * HISTORY_DAYS * (1 - Math.sqrt(random.next())) - random.integer(60_000, DAY_MS),
  )
  const id = recordId(random, 'pro', firstMs)
  const given = random.pick(place.given)
  const email = random.chance(0.85) ? emailOf(random, place, [given, random.pick(place.family)], n) : null
  const visits = makeVisits(random, firstMs, now, place)
  const profile = {
    id,
    created_at: iso(firstMs),
    updated_at: iso(visits.at(-1)!.ms),
    email,
    phone: place.phone && random.chance(0.4) ? place.phone.replace(/#/g, () => String(random.integer(0, 9))) : null,
    country,
    locale: place.locale,
    funnel_id: visits[0]!.funnel.id,
    preview: random.chance(0.02),
    integrations: email && random.chance(0.3) ? { crm: `c-${100_000 + n}` } : {},
  }
  const lines: Line[] = [{ record: 'profile', data: profile }]
  for (const visit of visits) lines.push(...visitLines(random, id, place, visit, { given, email }))
  return { id, place, email, visits, lines }
}

/** An address at a domain for examples. Half of the people have one in their own script, the others in ASCII. */
function emailOf(random: Random, place: Place, names: string[], n: number): string {
  const latin = names.join('.').normalize('NFD').replace(/\p{M}/gu, '').replaceAll('ı', 'i').replaceAll('ł', 'l')
  const plain = latin.replaceAll('ß', 'ss').replaceAll('’', '')
  const isLatin = /^[\x21-\x7e]+$/.test(plain)
  const inOwnScript = names.join('.').replaceAll('’', '')
  const local = random.chance(0.5)
    ? inOwnScript
    : isLatin
      ? plain
      : `${random.pick(HANDLES)}.${place.country.toLowerCase()}`
  const address = `${local}${n}@${random.pick(HOSTS)}`
  return random.chance(0.1) ? address : address.toLowerCase()
}

function makeVisits(random: Random, firstMs: number, now: number, place: Place): Visit[] {
  const visits: Visit[] = []
  const german = place.locale === 'de' && random.chance(0.5)
  const id = german ? 'fun_schlaf' : random.weighted(FUNNEL_SHARES)
  const funnel = FUNNELS.find((one) => one.id === id)!
  for (let ms = firstMs; ms < now && visits.length < 3; ms += random.integer(600_000, 40 * DAY_MS)) {
    const experiment = random.chance(0.35) ? random.pick(EXPERIMENTS) : null
    visits.push({ id: recordId(random, 'ses', ms), ms, funnel, experiment })
    if (random.chance(0.65)) break
  }
  return visits
}

function* visitLines(
  random: Random,
  profileId: string,
  place: Place,
  visit: Visit,
  person: { given: string; email: string | null },
): Iterable<Line> {
  const { id, ms, funnel, experiment } = visit
  const [city, region, postalCode] = random.pick(place.cities)
  const campaign = random.pick(['autumn', 'brand', 'newsletter'])
  const mark = CAMPAIGNS[campaign]!
  yield {
    record: 'session',
    data: {
      id,
      created_at: iso(ms),
      updated_at: iso(ms + random.integer(60_000, 420_000)),
      profile_id: profileId,
      funnel_id: funnel.id,
      funnel_version: funnel.version,
      experiment_id: experiment,
      locale: place.locale,
      origin: `https://quiz.example.com/${funnel.alias}?utm_source=${mark.source}&utm_medium=${mark.medium}&utm_campaign=${campaign}`,
      user_agent: random.pick(BROWSERS),
      query_params: { utm_source: mark.source, utm_medium: mark.medium, utm_campaign: campaign },
      ip: `${random.pick(NETWORKS)}.${random.integer(1, 254)}`,
      country: place.country,
      region_code: region,
      city,
      postal_code: postalCode,
      timezone: place.timezone,
      locale_code: `${place.locale}-${place.country}`,
      tracking_cookies: random.chance(0.5) ? { _ga: `GA1.1.${random.integer(1e8, 9e8)}.${Math.floor(ms / 1000)}` } : {},
    },
  }
  yield* replyLines(random, id, place.locale, person)
}

const GOALS = ['fall_asleep', 'sleep_through', 'wake_rested', 'less_stress', 'fewer_screens']
const AGES = ['18-24', '25-34', '35-44', '45-54', '55+']

/** The replies of a session. Some visitors leave at each screen: the later the screen, the fewer replies it has. */
function* replyLines(
  random: Random,
  sessionId: string,
  locale: string,
  { given, email }: { given: string; email: string | null },
): Iterable<Line> {
  const goals = GOALS.filter(() => random.chance(0.45))
  const questions: [name: string, type: string, value: string | string[] | null][] = [
    ['age', 'SingleSelect', random.pick(AGES)],
    ['goals', 'MultiSelect', goals],
    ['hours', 'SingleSelect', random.pick(['5', '6', '7', '8'])],
    ['name', 'Input', given],
    ['worry', 'Input', random.chance(0.3) ? null : random.pick(WORRIES[locale]!)],
    ['email', 'Email', email],
  ]
  for (const [index, [name, type, value]] of questions.entries()) {
    if (random.chance(0.06)) return
    yield {
      record: 'reply',
      data: {
        session_id: sessionId,
        element: { id: `el_${name}`, type, custom_id: name },
        screen: { id: `scr_${index + 1}`, index, custom_id: name === 'email' ? 'last' : null },
        value,
      },
    }
  }
}

// Replies to the question "What keeps you awake?", by language.
// biome-ignore format: a table.
const WORRIES: Readonly<Record<string, readonly string[]>> = {
  en: ['The baby.', 'Work, mostly.', 'I keep looking at my phone 📱', 'Neighbours & their dog'],
  de: ['Grübeln über morgen.', 'Das Kind wacht um fünf auf.', 'Lärm von der Straße'],
  fr: ['Je pense trop.', 'Le café après 17 h…', 'Mon voisin joue de l’orgue'],
  es: ['El ruido de la calle.', '¡Demasiado café!', 'El niño no duerme'],
  pt: ['Muita preocupação.', 'O calor à noite', 'Não consigo desligar'],
  pl: ['Stres w pracy.', 'Zbyt późna kawa', 'Hałas za ścianą'],
  tr: ['İş stresi.', 'Çok ışık var', 'Geç saatte çay'],
  uk: ['Тривога.', 'Думки про роботу', 'Їжа пізно ввечері'],
  el: ['Το άγχος της δουλειάς.', 'Πολύς θόρυβος', 'Ο καφές'],
  ar: ['القلق من العمل.', 'ضوضاء الشارع', 'الهاتف قبل النوم'],
  he: ['מחשבות על העבודה.', 'רעש מהרחוב', 'הילדים'],
  hi: ['काम की चिंता।', 'देर रात तक फ़ोन', 'गर्मी'],
  zh: ['工作压力大。', '睡前看手机', '邻居太吵'],
  ja: ['仕事のことを考えてしまう。', '寝る前のスマホ', '隣の音'],
}
