// Figures of combinations that are not stored: computed from the records, once for all questions of a request or page.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sharingSums } from '../../../src/data/figures/combined.ts'
import { followProject } from '../../../src/data/figures/follow.ts'
import type { Question } from '../../../src/data/figures/read.ts'
import type { Db } from '../../../src/lib/pg/db.ts'
import { figuresOf } from '../../support/figures.ts'
import { line, openImports } from '../../support/imports.ts'
import { type Caught, watched } from '../../support/plans.ts'

const imports = await openImports()
after(() => imports.stop())

const COUNTRIES = ['DE', 'ES', undefined]
const SOURCES = ['meta', 'google', undefined]
const STATUSES = ['active', 'cancelled', 'paused', 'expired', 'trialing', 'created']
const DAY_MS = 86_400_000
const at = (day: number) => new Date(Date.UTC(2026, 0, 1, 12) + day * DAY_MS).toISOString()

// Deterministic: the person's number decides everything, with steps that have no common divisor.
const people = Array.from({ length: 120 }, (_, n) => ({
  id: `person-${n}`,
  country: COUNTRIES[n % 3],
  source: SOURCES[(n * 7 + Math.floor(n / 3)) % 3],
}))

function linesOf({ id, country, source }: (typeof people)[number], n: number) {
  const day = (n * 11) % 90
  const subscriptions = Array.from({ length: n % 4 }, (_, m) => {
    const of = {
      id: `${id}-${m}`,
      profile_id: id,
      created_at: at(day + m * 20),
      product_id: m % 2 ? 'other' : 'product',
    }
    const status = STATUSES[(n + m * 5) % STATUSES.length]!
    return [
      line.subscription({
        ...of,
        status,
        price: 1000 + n,
        period_ends_at: at(day + m * 20 + 30),
        renews: status === 'active',
      }),
      ...(n % 5 ? [line.transaction({ ...of, subscription_id: of.id, price: 1000 + n, product_id: undefined })] : []),
    ]
  })
  return [
    line.profile({ id, ...(country && { country }) }),
    line.session({
      id: `visit-${n}`,
      profile_id: id,
      created_at: at(day),
      ...(country && { country }),
      ...(source && { source }),
    }),
    ...subscriptions.flat(),
  ]
}

async function projectOf(chosen: typeof people) {
  const project = await imports.project()
  const lines = people.flatMap((person, n) => (chosen.includes(person) ? linesOf(person, n) : []))
  await imports.run(project, [line.product(), line.product({ id: 'other' }), ...lines])
  await followProject(imports.db, project.id)
  return project.id
}

const QUESTIONS: [string, Partial<Question>][] = [
  ['mrr paying began_paying ended new_subscriptions trials converted', {}],
  ['mrr paying began_paying ended', { period: 'month' }],
  ['paying new_subscriptions', { period: 'week', from: '2026-01-20', to: '2026-03-20' }],
  ['ended began_paying', { dimension: 'cohort' }],
  ['mrr_change', { dimension: 'movement', period: 'month' }],
  ['mrr_change', { money: 'own', filters: [{ dimension: 'movement', value: 'churn' }] }],
  ['new_subscriptions', { dimension: 'product', from: '2026-02-01', to: '2026-02-20' }],
  ['revenue sales payers customers', { dimension: 'product' }],
  ['revenue sales', { period: 'day', money: 'own' }],
  ['sessions people subscribed paid', {}],
]

test('equal those of a project that has only the records of these people', async () => {
  const all = await projectOf(people)
  for (const [source, country] of [
    ['meta', 'DE'],
    ['google', 'ES'],
    ['', 'DE'],
    ['meta', ''],
  ] as const) {
    const chosen = people.filter((one) => (one.source ?? '') === source && (one.country ?? '') === country)
    assert.ok(chosen.length > 5)
    const only = await projectOf(chosen)
    const filters = [
      { dimension: 'source', value: source },
      { dimension: 'country', value: country },
    ]
    const page = sharingSums(imports.db)
    for (const [metrics, question] of QUESTIONS) {
      const expected = await figuresOf(imports.db, only, metrics, question)
      const combined = { ...question, filters: [...(question.filters ?? []), ...filters] }
      assert.deepEqual(await figuresOf(page, all, metrics, combined), expected, `${source} ${country}: ${metrics}`)
    }
  }
})

test('are read once for all questions of a page, and only of the people that fulfil the filters', async () => {
  const project = await projectOf(people)
  const caught: Caught[] = []
  const page: Db = sharingSums(watched(imports.db, (statement) => caught.push(statement)))
  const filters = [
    { dimension: 'source', value: 'meta' },
    { dimension: 'country', value: 'DE' },
  ]
  const subscriptions = QUESTIONS.filter(([metrics]) => !/revenue|sessions/.test(metrics))
  await Promise.all(
    subscriptions.map(([metrics, question]) =>
      figuresOf(page, project, metrics, { ...question, filters: [...(question.filters ?? []), ...filters] }),
    ),
  )
  const read = caught.filter(({ text }) => /from subscriptions u\b/.test(text))
  assert.equal(read.length, 1)
  assert.equal(caught.filter(({ text }) => /from counts c\b/.test(text)).length, 1)
  assert.match(read[0]!.text, /with profiles as materialized/)
})
