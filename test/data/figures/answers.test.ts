// Answers by value: what is a value, what is only counted, and that figures stay equal to the replies.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { clean } from '../../../src/core/records/visit.ts'
import { type Answer, readAnswers } from '../../../src/data/figures/answers.ts'
import { openRandom } from '../../../src/lib/seeded-random.ts'
import { ALL_DAYS, assertExact } from '../../support/figures.ts'
import { type Line, line, type Project } from '../../support/imports.ts'
import { openErasedImports } from '../ingest/erased-imports.ts'

const imports = await openErasedImports()
after(() => imports.stop())

const SCREEN = { id: 's', index: 1 }
const reply = (session_id: string, value: unknown, type = 'SingleSelect', id = 'q') =>
  line.reply({ session_id, screen: SCREEN, element: { id, type }, value })
const catalogue = [line.funnel({ id: 'quiz' }), line.profile({ id: 'ada' }), line.profile({ id: 'bob' })]
const session = (id: string, profile_id = 'ada', more = {}) =>
  line.session({ id, profile_id, funnel_id: 'quiz', ...more })

async function answersOf({ id: project }: Project): Promise<string[]> {
  await assertExact(imports.db, project)
  const found = await readAnswers(imports.db, { project, funnel: 'quiz', screen: 's', ...ALL_DAYS, test: false })
  return found.map(shown)
}

const shown = ({
  element_id,
  kind,
  value,
  sessions,
  paid,
}: Pick<Answer, 'element_id' | 'kind' | 'value' | 'sessions' | 'paid'>) =>
  [element_id, kind, value, sessions, paid].join('|')

test('each choice of a reply counts, written text does not become a value, and an erasure makes answers erased', async () => {
  const project = await imports.project()
  await imports.run(project, [
    ...catalogue,
    ...['a', 'b', 'c', 'd'].map((id) => session(id)),
    session('e', 'bob'),
    session('f', 'bob'),
    line.transaction({ profile_id: 'ada', session_id: 'b', price: 1999 }),
    reply('a', ['sleep', 'calm', 'sleep'], 'MultiSelect'),
    reply('b', ['calm'], 'MultiSelect'),
    reply('c', [], 'MultiSelect'),
    reply('d', 'My name is Ada', 'Input'),
    reply('e', ['sleep'], 'MultiSelect'),
    reply('f', null),
  ])
  const before = ['q|all||6|1', 'q|value|calm|2|1', 'q|value|sleep|2|0', 'q|written||1|0', 'q|empty||2|0']
  assert.deepEqual(await answersOf(project), before)
  await imports.erase(project, 'bob')
  const after = [
    'q|all||6|1',
    'q|value|calm|2|1',
    'q|value|sleep|1|0',
    'q|written||1|0',
    'q|empty||1|0',
    'q|erased||2|0',
  ]
  assert.deepEqual(await answersOf(project), after)
  await imports.run(project, [reply('a', ['calm'], 'MultiSelect'), reply('d', 'calm', 'Radio')])
  assert.deepEqual((await answersOf(project)).slice(0, 3), ['q|all||6|1', 'q|value|calm|3|1', 'q|empty||1|0'])
})

test('values are cleaned as the dimensions of sessions are, and nothing that JSON can write stops the figures', async () => {
  const texts = [
    ...[
      '25-34',
      'ada@example.com',
      'ada%40example.com',
      '+49 151 12345678',
      '(030) 123-45678',
      '2026-11-25',
      '1234567',
    ],
    ...[
      '0190f9a0-1111-7222-8333-444455556666',
      'sk_live_4eC39HqLyjWDarjtT1zdp7dc',
      'EAIaIQobChMIq4Xv2b3ZhQMVk5RoCR0abcD_BwE',
    ],
    ...[
      'eyJhbGciOi.JIUzI1NiJ9',
      'summer_sale_2026_us_lookalike_3',
      ' two \n\t words ',
      '😀'.repeat(150),
      'Größe 42',
      '0012345',
      '00123456',
    ],
    ...['12 345 678', '12 345 678 9', 'x'.repeat(5000)],
  ]
  const project = await imports.project()
  const odd = ['half \ud800 a pair', 'literal \\u0000 text']
  const ids = [...texts, ...odd].map((_text, n) => `s${n}`)
  const { rejects } = await imports.run(project, [
    ...catalogue,
    ...ids.map((id) => session(id)),
    ...texts.map((text, n) => reply(`s${n}`, text)),
  ])
  assert.deepEqual(rejects, [])
  for (const [n, text] of odd.entries())
    await imports.db.query(
      `insert into replies (project_id, session_id, screen_id, element_id, screen_index, element_type, value)
       values ($1, $2, 's', 'odd', 1, 'Radio', $3)`,
      [project.id, `s${texts.length + n}`, n === 0 ? '"half \\ud800 a \\u0000 pair"' : JSON.stringify(text)],
    )
  const expected = texts.map((text) => clean(text, 'source'))
  const found = (await answersOf(project)).map((one) => one.split('|'))
  const values = (id: string) =>
    found.flatMap(([element, kind, value]) => (element === id && kind === 'value' ? [value] : []))
  assert.deepEqual(values('q').sort(), [...new Set(expected.flatMap((one) => (one === null ? [] : [one])))].sort())
  assert.deepEqual(
    found
      .filter(([element, kind]) => element === 'q' && kind === 'written')
      .map(([, , , sessions]) => Number(sessions)),
    [expected.filter((one) => one === null).length],
  )
  assert.deepEqual(values('odd').sort(), ['half � a � pair', 'literal \\ufffd text'])
})

test('of a day and project, the 1,000 most frequent values are kept, and the others are counted', async () => {
  const project = await imports.project()
  const numbers = Array.from({ length: 1100 }, (_, n) => n)
  await imports.run(project, [
    ...catalogue,
    ...['a', 'b', 'c'].map((id) => session(id)),
    reply(
      'a',
      numbers.map((n) => `choice ${n}`),
      'MultiSelect',
    ),
    reply('b', ['choice 1099', 'other'], 'MultiSelect'),
    reply('c', ['other'], 'MultiSelect'),
  ])
  const found = await answersOf(project)
  assert.deepEqual(found.slice(0, 3), ['q|all||3|0', 'q|value|choice 1099|2|0', 'q|value|other|2|0'])
  assert.equal(found.filter((one) => one.startsWith('q|value|')).length, 1000)
  assert.equal(found.at(-1), 'q|other||101|0')
})

test('equal an independent model through random imports, corrections and erasures', async () => {
  for (const seed of [1]) {
    const random = openRandom(seed)
    const project = await imports.project()
    const people = ['ada', 'bob', 'eve']
    const sessions = new Map<string, string>()
    const replies = new Map<
      string,
      { session: string; element: string; value: string | string[] | null; type: string }
    >()
    const erased = new Set<string>()
    const paid = new Set<string>()
    await imports.run(project, [...catalogue, line.profile({ id: 'eve' })])
    for (let step = 1; step <= 4; step += 1) {
      const lines: Line[] = []
      for (let n = 0; n < 8; n += 1) {
        const id = `ses${random.integer(1, 20)}`
        const owner = sessions.get(id) ?? random.pick(people)
        sessions.set(id, owner)
        lines.push(session(id, owner, { created_at: `2026-0${random.integer(1, 3)}-10T10:00:00Z` }))
      }
      for (let n = 0; n < 25; n += 1) {
        const one = { session: random.pick([...sessions.keys()]), element: random.pick(['p', 'q']) }
        const type = random.pick(['MultiSelect', 'Input', 'Rating'])
        const value =
          type === 'MultiSelect' ? ['x', 'y', 'z'].filter(() => random.chance(0.5)) : random.pick(['x', 'y', null])
        replies.set(`${one.session} ${one.element}`, {
          ...one,
          type,
          value: erased.has(sessions.get(one.session)!) ? null : value,
        })
        lines.push(reply(one.session, value, type, one.element))
      }
      const buyer = random.pick([...sessions.keys()])
      paid.add(buyer)
      lines.push(line.transaction({ id: `t${step}`, profile_id: sessions.get(buyer)!, session_id: buyer, price: 100 }))
      await imports.run(project, lines, { live: step % 2 === 0 })
      if (step === 2) {
        erased.add('bob')
        for (const one of replies.values()) if (sessions.get(one.session) === 'bob') one.value = null
        await imports.erase(project, 'bob')
      }
      const counts = new Map<string, [number, number]>()
      for (const { session: id, element, value, type } of replies.values()) {
        const add = (kind: string, text = '') => {
          const [count, payers] = counts.get(`${element}|${kind}|${text}`) ?? [0, 0]
          counts.set(`${element}|${kind}|${text}`, [count + 1, payers + (paid.has(id) ? 1 : 0)])
        }
        add('all')
        const texts = [value ?? []].flat()
        if (texts.length === 0) add(erased.has(sessions.get(id)!) ? 'erased' : 'empty')
        else if (type === 'Input') add('written')
        else for (const text of texts) add('value', text)
      }
      assert.deepEqual(
        (await answersOf(project)).sort(),
        [...counts].map(([key, sums]) => [key, ...sums].join('|')).sort(),
        `seed ${seed} step ${step}`,
      )
    }
  }
})
