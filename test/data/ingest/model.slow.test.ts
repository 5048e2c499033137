// Random imports one after the other, against a model in memory that takes their lines one by one.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { line, openImports, type Project } from '../../support/imports.ts'
import { assertCounted } from './counters.ts'

const imports = await openImports()
after(() => imports.stop())

type Kind = 'funnel' | 'profile' | 'session' | 'subscription'
type Data = { id: string } & Record<string, string | boolean | undefined>
interface Given {
  kind: Kind
  data: Data
  /** The second of `updated_at`; undefined: the line has none. */
  time: number | undefined
  /** Whether the line is no good by itself. */
  broken: boolean
}
interface File {
  lines: Given[]
  live: boolean
  skipBadLines: boolean
}
/** A stored record: its content, and the second of `updated_at`, or when it was stamped: 1000 and the number of the file. */
interface Stored {
  data: Data
  time: number
  source: number | undefined
}

const KINDS: Kind[] = ['funnel', 'profile', 'session', 'subscription']
const REFERENCES: Record<Kind, Record<string, Kind>> = {
  funnel: {},
  profile: { funnel_id: 'funnel' },
  session: { profile_id: 'profile', funnel_id: 'funnel' },
  subscription: { profile_id: 'profile', funnel_id: 'funnel', session_id: 'session' },
}
const FIRST_STAMP = 1000

class Model {
  readonly stored: Record<Kind, Map<string, Stored>> = {
    funnel: new Map(),
    profile: new Map(),
    session: new Map(),
    subscription: new Map(),
  }
  private files = 0

  import({ lines, live, skipBadLines }: File) {
    const stamp = FIRST_STAMP + ++this.files
    const good = this.withoutBad(lines)
    const rejected = lines.length - good.length
    const result = { read: lines.length, written: 0, unchanged: 0, skipped: 0, erased: 0, rejected }
    if (rejected > 0 && !skipBadLines) return result
    const renamed = new Set<string>()
    for (const kind of KINDS) {
      for (const id of new Set(good.filter((given) => given.kind === kind).map(({ data }) => data.id)))
        this.merge(kind, id, good, { live, stamp, result, renamed })
    }
    for (const [, subscription] of this.stored.subscription) {
      if (renamed.has(subscription.data.profile_id as string)) subscription.time = stamp
    }
    return result
  }

  private withoutBad(lines: Given[]): Given[] {
    let good = lines.filter(({ broken }) => !broken)
    for (const kind of KINDS) {
      good = good.filter(
        (given) =>
          given.kind !== kind ||
          Object.entries(REFERENCES[kind]).every(([field, target]) => {
            const id = given.data[field]
            const staged = () => good.some((other) => other.kind === target && other.data.id === id)
            return id === undefined || this.stored[target].has(id as string) || staged()
          }),
      )
    }
    return good
  }

  private merge(
    kind: Kind,
    id: string,
    good: Given[],
    {
      live,
      stamp,
      result,
      renamed,
    }: {
      live: boolean
      stamp: number
      result: { written: number; unchanged: number; skipped: number }
      renamed: Set<string>
    },
  ) {
    const old = this.stored[kind].get(id)
    // The source's own time, where it gave one; a stamp of ours is later than what the source says next.
    let newest = old ? (old.source ?? old.time) : Number.NEGATIVE_INFINITY
    const taken: Given[] = []
    for (const given of good.filter((other) => other.kind === kind && other.data.id === id)) {
      // A line without a time is newer than any with one.
      const time = given.time ?? Number.POSITIVE_INFINITY
      if (time < newest) {
        result.skipped++
        continue
      }
      newest = time
      taken.push(given)
    }
    const last = taken.at(-1)
    if (!last) return
    const isStored = (line: Given) =>
      old !== undefined &&
      sameData(old.data, line.data) &&
      (live || line.time === undefined || line.time === old.source)
    // Equal to what is stored, or repeated by the next line.
    const isUnchanged = (line: Given, next?: Given) =>
      isStored(line) || (next !== undefined && sameData(next.data, line.data) && (live || next.time === line.time))
    for (const [n, line] of taken.entries()) result[isUnchanged(line, taken[n + 1]) ? 'unchanged' : 'written']++
    const given = live ? undefined : last.time
    const same = old && sameData(old.data, last.data)
    // It says nothing new: not what it holds, and not when it was so.
    if (same && (last.time === undefined || last.time === old.source)) return
    this.stored[kind].set(id, { data: last.data, time: given ?? (same ? old.time : stamp), source: last.time })
    if (kind === 'profile' && old && (old.data.email !== last.data.email || old.data.preview !== last.data.preview))
      renamed.add(id)
  }
}

const sameData = (one: Data, other: Data) => JSON.stringify(one) === JSON.stringify(other)

const pick = (...values: string[]) => fc.constantFrom(...values)
const maybe = (...values: string[]) => fc.option(pick(...values), { nil: undefined, freq: 3 })
const FUNNELS = ['f1', 'f2']
const PROFILES = ['p1', 'p2', 'p3']
const data: Record<Kind, fc.Arbitrary<Data>> = {
  funnel: fc.record({ id: pick(...FUNNELS), title: pick('a', 'b'), deleted_at: maybe('2026-01-01T00:00:00Z') }),
  profile: fc.record({
    id: pick(...PROFILES),
    email: maybe('a@x', 'b@x'),
    preview: fc.boolean(),
    phone: maybe('1', '2'),
    funnel_id: maybe(...FUNNELS),
  }),
  session: fc.record({
    id: pick('s1', 's2'),
    profile_id: pick(...PROFILES),
    funnel_id: maybe(...FUNNELS),
    ip: maybe('1'),
  }),
  subscription: fc.record({
    id: pick('u1', 'u2', 'u3'),
    profile_id: pick(...PROFILES),
    funnel_id: maybe(...FUNNELS),
    session_id: maybe('s1', 's2'),
    status: pick('active', 'expired'),
    payment_provider: maybe('stripe', 'other'),
  }),
}
const given: fc.Arbitrary<Given> = fc.oneof(
  ...KINDS.map((kind) =>
    fc.record({
      kind: fc.constant(kind),
      data: data[kind],
      time: fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined, freq: 4 }),
      broken: fc.integer({ min: 0, max: 40 }).map((n) => n === 0),
    }),
  ),
)
const file: fc.Arbitrary<File> = fc.record({
  lines: fc.array(given, { maxLength: 25 }),
  live: fc.integer({ min: 0, max: 3 }).map((n) => n === 0),
  skipBadLines: fc.integer({ min: 0, max: 3 }).map((n) => n > 0),
})

const DATE = (second: number) => `2026-01-01T00:00:0${second}Z`

function lineOf({ kind, data, time, broken }: Given) {
  const dated = time === undefined ? data : { ...data, updated_at: DATE(time) }
  return line[kind](broken ? { ...dated, unknown: 1 } : dated)
}

const COLUMNS: Record<Kind, string> = {
  funnel: `id, title, case when deleted_at is not null then '2026-01-01T00:00:00Z' end as deleted_at`,
  profile: 'id, email, preview, phone, funnel_id',
  session: 'id, profile_id, funnel_id, ip',
  subscription: 'id, profile_id, funnel_id, session_id, status, payment_provider',
}

/** What is stored, with the second of `updated_at`, or `stamped`. */
async function storedIn({ id }: Project): Promise<Record<Kind, object[]>> {
  const kinds = KINDS.map(async (kind) => {
    const rows = await imports.rows(
      `select ${COLUMNS[kind]}, case when updated_at < '2026-01-01T00:01:00Z' then extract(second from updated_at)::int::text else 'stamped' end as time
       from ${kind}s where project_id = $1 order by id`,
      [id],
    )
    return [kind, rows]
  })
  return Object.fromEntries(await Promise.all(kinds))
}

function storedBy({ stored }: Model): Record<Kind, object[]> {
  const text = (value: Data[string]) =>
    value === undefined ? null : typeof value === 'boolean' ? String(value)[0]! : value
  const kinds = KINDS.map((kind) => {
    const rows = [...stored[kind].values()].sort((a, b) => (a.data.id < b.data.id ? -1 : 1))
    return [
      kind,
      rows.map(({ data, time }) => ({
        ...Object.fromEntries(Object.entries(data).map(([name, value]) => [name, text(value)])),
        time: time < FIRST_STAMP ? String(time) : 'stamped',
      })),
    ]
  })
  return Object.fromEntries(kinds)
}

test('any files, one after the other, leave what the model has, and counters that a recount agrees with', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(file, { minLength: 1, maxLength: 4 }), async (files) => {
      const project = await imports.project()
      const model = new Model()
      await imports.run(project, [line.product()])
      for (const one of files) {
        const { rejects: _, ...result } = await imports.run(project, one.lines.map(lineOf), one)
        assert.deepEqual(result, model.import(one))
        assert.deepEqual(await storedIn(project), storedBy(model))
        await assertCounted(imports.db, project)
      }
    }),
    { numRuns: 30 },
  )
})
