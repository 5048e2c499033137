// What an import does to a project: every kind, all or nothing, references, older and repeated lines, stamps, counters.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { Refusal } from '../../src/lib/errors.ts'
import { countsOf, type Imports, type Line, line, openImports, type Project, T, uuid } from '../support/imports.ts'

let imports: Imports
before(async () => {
  imports = await openImports()
})
after(() => imports.stop())

const all = (written: number) => ({ read: written, written, skipped: 0, erased: 0, rejected: 0, rejects: [] })

async function column(project: Project, table: string, name: string, id: string): Promise<string | null | undefined> {
  const [row] = await imports.rows(`select ${name} as value from ${table} where project_id = $1 and id = $2`, [
    project.id,
    id,
  ])
  return row?.value
}

const countOf = async (project: Project, table: string) =>
  Number((await imports.row(`select count(*) as n from ${table} where project_id = $1`, [project.id])).n)

async function now(): Promise<string> {
  return (await imports.row('select db_clock() as now')).now!
}

test('one of each kind, in the wrong order, is stored as it was told', async () => {
  const project = await imports.project()
  const lines = Object.values(line).map((kind) => (kind as (data?: object) => { record: string; data: object })())
  assert.deepEqual(await imports.run(project, lines.reverse()), all(lines.length))
  for (const table of [
    'funnels',
    'experiments',
    'products',
    'profiles',
    'sessions',
    'replies',
    'subscriptions',
    'transactions',
  ])
    assert.equal(await countOf(project, table), 1, table)
  const shown = await imports.row(
    `select p.psp, r.amount, r.imported, r.trx_created_at, m.currencies, c.project_id
     from report_transactions r, merchant_accounts m, customers c, (select 'simulator' as psp) p
     where r.organization_id = $1 and m.organization_id = $1 and c.organization_id = $1`,
    [project.organizationId],
  )
  assert.deepEqual(shown, {
    psp: 'simulator',
    amount: '10.00',
    imported: 't',
    trx_created_at: '2026-01-02 03:04:05.000006+00',
    currencies: '[]',
    project_id: project.id,
  })
})

test('a project that does not exist is refused', async () => {
  await assert.rejects(
    imports.run({ id: 'nowhere', organizationId: '' }, []),
    new Refusal('There is no project "nowhere".'),
  )
})

test('nothing is a good import, too', async () => {
  assert.deepEqual(await imports.run(await imports.project(), ['', '  ']), all(0))
})

describe('a bad line', () => {
  test('keeps everything out, and each is named with its place', async () => {
    const project = await imports.project()
    const lines = [
      line.profile(),
      '',
      '{',
      line.session({ profile_id: 'nobody' }),
      line.profile({ id: 'b', mail: 'x' }),
    ]
    const result = await imports.run(project, lines)
    assert.deepEqual(result, {
      read: 4,
      written: 0,
      skipped: 0,
      erased: 0,
      rejected: 3,
      rejects: [
        { source: 'file', line: 3, reason: 'column 2: expected a name in double quotes' },
        { source: 'file', line: 5, reason: 'profile has no field "mail"' },
        { source: 'file', line: 4, reason: 'session.profile_id refers to a profile that is not there: nobody' },
      ],
    })
    assert.equal(await countOf(project, 'profiles'), 0)
  })

  test('is one whose value no index could hold', async () => {
    const project = await imports.project()
    // PostgreSQL shortens what repeats itself.
    const long = randomBytes(4500).toString('hex')
    const result = await imports.run(project, [line.funnel({ alias: long }), line.customer({ email: long })])
    assert.deepEqual(
      result.rejects.map(({ source, line, reason }) => `${source}:${line}: ${reason}`),
      [
        'file:1: funnel.alias must have at most 256 characters',
        'file:2: customer.email must have at most 320 characters',
      ],
    )
  })

  test('is left out when told so, with all that needs it, and given back as it came', async () => {
    const project = await imports.project()
    const bad = [
      '{"record":  "profile", "data": {"id": "bad"}}\r',
      JSON.stringify(line.session({ id: 'lost', profile_id: 'bad' })),
      JSON.stringify(line.reply({ session_id: 'lost' })),
      JSON.stringify(line.subscription({ session_id: 'lost' })),
      JSON.stringify(line.transaction({ subscription_id: 'subscription' })),
      JSON.stringify(line.customer({ profile_id: 'bad' })),
    ]
    let given = ''
    const result = await imports.run(project, [...bad, line.profile(), line.product(), line.session()], {
      skipBadLines: true,
      async saveRejected(lines) {
        for await (const { source, bytes } of lines) given += `${source}:${bytes}`
      },
    })
    assert.deepEqual(
      { ...result, rejects: [] },
      { read: 9, written: 3, skipped: 0, erased: 0, rejected: 6, rejects: [] },
    )
    assert.equal(given, bad.map((text) => `file:${text}\n`).join(''))
    assert.deepEqual(
      result.rejects.map(({ line: number, reason }) => `${number}: ${reason}`),
      [
        '1: profile.created_at is missing',
        '2: session.profile_id refers to a profile that is not there: bad',
        '3: reply.session_id refers to a session that is not there: lost',
        '4: subscription.session_id refers to a session that is not there: lost',
        '5: transaction.subscription_id refers to a subscription that is not there: subscription',
        '6: customer.profile_id refers to a profile that is not there: bad',
      ],
    )
    assert.deepEqual([await countOf(project, 'profiles'), await countOf(project, 'sessions')], [1, 1])
  })

  test('that is too long or not UTF-8 is given back byte by byte', async () => {
    const project = await imports.project()
    const long = `{"record": "profile", "data": "${'x'.repeat(1 << 20)}"}`
    const { rows } = imports
    const parts: Buffer[] = []
    const result = await imports.run(project, [long, line.profile(), '\ufffd'], {
      skipBadLines: true,
      async saveRejected(lines) {
        for await (const { bytes } of lines) parts.push(bytes)
      },
    })
    assert.deepEqual([result.read, result.written, result.rejected], [3, 1, 2])
    assert.equal(Buffer.concat(parts).toString(), `${long}\n\ufffd\n`)
    assert.equal((await rows('select 1 from profiles where project_id = $1', [project.id])).length, 1)
  })

  test('is the last one read when it is the hundredth', async () => {
    const bad = Array.from({ length: 150 }, () => '{}')
    const result = await imports.run(await imports.project(), [line.profile(), ...bad])
    assert.deepEqual(
      [result.stopped, result.read, result.rejected, result.rejects.length, result.rejects[99]!.line],
      [true, 101, 100, 100, 101],
    )
    const skipped = await imports.run(await imports.project(), bad, { skipBadLines: true })
    assert.deepEqual([skipped.stopped, skipped.rejected, skipped.rejects.length], [undefined, 150, 100])
  })

  test('is named before the lines that refer to it, and those before what refers to them', async () => {
    const project = await imports.project()
    const lines = [
      line.profile(),
      line.transaction({ session_id: 'session-1' }),
      ...Array.from({ length: 120 }, (_, n) => line.session({ id: `session-${n}`, experiment_id: 'bad' })),
      line.experiment({ id: 'bad', name: 'x' }),
    ]
    const result = await imports.run(project, lines)
    assert.deepEqual([result.rejected, result.rejects.length], [122, 100])
    assert.deepEqual(
      [0, 1, 99].map((n) => [result.rejects[n]!.line, result.rejects[n]!.reason]),
      [
        [123, 'experiment has no field "name"'],
        [3, 'session.experiment_id refers to a experiment that is not there: bad'],
        [101, 'session.experiment_id refers to a experiment that is not there: bad'],
      ],
    )
  })
})

describe('a reference', () => {
  test('to what is stored is good, to another project or to another kind it is not', async () => {
    const [project, other] = [await imports.project(), await imports.project()]
    await imports.run(other, [line.profile({ id: 'theirs' })])
    await imports.run(project, [line.profile({ id: 'ours' })])
    assert.equal((await imports.run(project, [line.session({ profile_id: 'ours' })])).written, 1)
    assert.equal((await imports.run(project, [line.session({ profile_id: 'theirs' })])).rejected, 1)
    assert.equal((await imports.run(project, [line.session({ profile_id: 'ours', funnel_id: 'ours' })])).rejected, 1)
  })

  test('is checked for every kind that has one', async () => {
    const project = await imports.project()
    await imports.run(project, [line.profile(), line.product(), line.session()])
    const references = [
      line.profile({ funnel_id: 'x' }),
      line.session({ funnel_id: 'x' }),
      line.session({ experiment_id: 'x' }),
      line.reply({ session_id: 'x' }),
      ...['profile_id', 'product_id', 'funnel_id', 'session_id', 'experiment_id'].map((name) =>
        line.subscription({ [name]: 'x' }),
      ),
      ...['profile_id', 'session_id', 'funnel_id', 'experiment_id', 'subscription_id'].map((name) =>
        line.transaction({ [name]: 'x' }),
      ),
      line.customer({ profile_id: 'x' }),
    ]
    const result = await imports.run(project, references)
    assert.deepEqual(
      [result.rejected, result.rejects.every(({ reason }) => reason.endsWith('not there: x'))],
      [references.length, true],
    )
    // Each of the two needs the other one first, so neither is asked for.
    const free = line.subscription({ trial_transaction_id: 'x', upgrades_to: 'x' })
    assert.equal((await imports.run(project, [free])).written, 1)
  })
})

describe('a line about a stored record', () => {
  const at = (second: number) => `2026-02-01T00:00:0${second}.000000Z`
  const stored = (second: number) => `2026-02-01 00:00:0${second}+00`

  test('is skipped when it is older, and wins when it is as old or newer', async () => {
    const project = await imports.project()
    const put = (phone: string, updated_at: string) => imports.run(project, [line.profile({ phone, updated_at })])
    await put('first', at(5))
    assert.deepEqual(await put('older', at(4)), { ...all(0), read: 1, skipped: 1 })
    assert.equal(await column(project, 'profiles', 'phone', 'profile'), 'first')
    assert.deepEqual(await put('same', at(5)), all(1))
    assert.equal(await column(project, 'profiles', 'phone', 'profile'), 'same')
    await put('newer', at(6))
    assert.equal(await column(project, 'profiles', 'updated_at', 'profile'), stored(6))
  })

  test('is compared with the time its source gave, not with the stamp of a live import', async () => {
    const project = await imports.project()
    const put = (phone: string, updated_at: string) =>
      imports.run(project, [line.profile({ phone, updated_at })], { live: true })
    await put('first', at(5))
    // Stamped long after at(6), which is a change all the same.
    assert.deepEqual(await put('second', at(6)), all(1))
    assert.equal(await column(project, 'profiles', 'phone', 'profile'), 'second')
    const stamp = await column(project, 'profiles', 'updated_at', 'profile')
    await put('second', at(8))
    assert.equal(await column(project, 'profiles', 'updated_at', 'profile'), stamp)
    assert.deepEqual(await put('older', at(7)), { ...all(0), read: 1, skipped: 1 })
  })

  test('replaces it as a whole', async () => {
    const project = await imports.project()
    await imports.run(project, [line.profile({ email: 'A@x', phone: '1', updated_at: at(1) })])
    await imports.run(project, [line.profile({ phone: '2', updated_at: at(2) })])
    const row = await imports.row('select email, email_folded, phone from profiles where project_id = $1', [project.id])
    assert.deepEqual(row, { email: null, email_folded: null, phone: '2' })
  })

  test('without a time is stamped, and so is what follows it', async () => {
    const project = await imports.project()
    const begin = await now()
    await imports.run(project, [line.profile({ phone: '1' })])
    const first = (await column(project, 'profiles', 'updated_at', 'profile'))!
    assert.ok(first >= begin)
    await imports.run(project, [line.profile({ phone: '2' })])
    const second = (await column(project, 'profiles', 'updated_at', 'profile'))!
    assert.ok(second > first && second <= (await now()))
  })

  test('that says nothing new leaves it untouched, stamp and all', async () => {
    const project = await imports.project()
    const lines = [
      line.profile({ email: 'a@x', integrations: { a: 1 } }),
      line.product({ prices: [] }),
      line.payment({ trx_id: uuid(900) }),
    ]
    await imports.run(project, lines)
    const versions = () =>
      imports.rows(
        `select updated_at, xmin from profiles where project_id = $1 union all select updated_at, xmin from products where project_id = $1
         union all select updated_at, xmin from report_transactions where organization_id = $2`,
        [project.id, project.organizationId],
      )
    const stamps = async () => (await versions()).map(({ updated_at }) => updated_at)
    const before = await stamps()
    for (const live of [false, true]) assert.deepEqual(await imports.run(project, lines, { live }), all(3))
    assert.deepEqual(await stamps(), before)
  })

  test('that comes twice in one file wins by time, then by place', async () => {
    const project = await imports.project()
    const phone = (phone: string, id: string, second?: number) =>
      line.profile({ id, phone, ...(second !== undefined && { updated_at: at(second) }) })
    await imports.run(project, [phone('stored', 'd', 5)])
    const result = await imports.run(project, [
      phone('1', 'a', 3),
      phone('2', 'a', 2),
      phone('3', 'a', 3),
      phone('1', 'b', 1),
      phone('2', 'b', 2),
      phone('1', 'c', 1),
      phone('2', 'c'),
      phone('3', 'c', 9),
      phone('1', 'd', 4),
      phone('2', 'd', 6),
      phone('3', 'd', 3),
    ])
    assert.deepEqual(result, { ...all(7), read: 11, skipped: 4 })
    const phones = await imports.rows('select id, phone from profiles where project_id = $1 order by id', [project.id])
    assert.deepEqual(
      phones.map(({ id, phone }) => `${id}${phone}`),
      ['a3', 'b2', 'c2', 'd2'],
    )
  })

  test('of a reply is found by session, screen and element; of a merchant account by provider and id', async () => {
    const project = await imports.project()
    const reply = (element: string, value: string) => line.reply({ element: { id: element, type: 'Input' }, value })
    await imports.run(project, [
      line.profile(),
      line.session(),
      reply('a', '1'),
      reply('b', '1'),
      line.merchant_account({ region: 'eu' }),
    ])
    assert.deepEqual(
      await imports.run(project, [reply('a', '2'), reply('a', '3'), line.merchant_account({ region: 'us' })]),
      all(3),
    )
    const values = await imports.rows('select element_id, value from replies where project_id = $1 order by 1', [
      project.id,
    ])
    assert.deepEqual(values, [
      { element_id: 'a', value: '"3"' },
      { element_id: 'b', value: '"1"' },
    ])
    const accounts = await imports.rows('select region from merchant_accounts where organization_id = $1', [
      project.organizationId,
    ])
    assert.deepEqual(accounts, [{ region: 'us' }])
  })
})

describe('a live import', () => {
  test('stamps every change now, later than what is stored', async () => {
    const project = await imports.project()
    const begin = await now()
    await imports.run(project, [line.profile({ updated_at: T })], { live: true })
    const first = (await column(project, 'profiles', 'updated_at', 'profile'))!
    assert.ok(first >= begin)
    assert.equal(await column(project, 'profiles', 'created_at', 'profile'), '2026-01-02 03:04:05.000006+00')
    await imports.rows(`update profiles set updated_at = db_clock() + interval '1 hour' where project_id = $1`, [
      project.id,
    ])
    const ahead = (await column(project, 'profiles', 'updated_at', 'profile'))!
    await imports.run(project, [line.profile({ phone: '1' })], { live: true })
    assert.ok((await column(project, 'profiles', 'updated_at', 'profile'))! > ahead)
  })

  test('stamps a session whose replies came or changed, once, and no other', async () => {
    const project = await imports.project()
    const stampOf = (id: string) => column(project, 'sessions', 'updated_at', id)
    const live = (...lines: Line[]) => imports.run(project, lines, { live: true })
    await imports.run(project, [
      ...[line.profile(), line.session({ updated_at: T }), line.session({ id: 'other', updated_at: T })],
      ...[line.reply(), line.reply({ session_id: 'other' })],
    ])
    const history = await stampOf('session')
    assert.equal(history, '2026-01-02 03:04:05.000006+00')

    const second = { screen: { id: 'second', index: 1 } }
    await live(line.reply({ ...second, value: 'a' }), line.reply({ session_id: 'other' }))
    const came = (await stampOf('session'))!
    assert.ok(came > history)
    await live(line.reply({ ...second, value: 'b' }))
    const changed = (await stampOf('session'))!
    assert.ok(changed > came)
    await live(line.reply({ ...second, value: 'b' }))
    assert.equal(await stampOf('session'), changed)
    assert.equal(await stampOf('other'), history)

    await imports.run(project, [line.reply({ ...second, value: 'c' })])
    assert.equal(await stampOf('session'), changed, 'History stamps nothing.')
    await live(line.session({ locale: 'de' }), line.profile({ locale: 'de' }), line.reply({ ...second, value: 'd' }))
    assert.equal(await stampOf('session'), await column(project, 'profiles', 'updated_at', 'profile'))
  })

  test('stamps nothing below the floor that a sync has set', async () => {
    const project = await imports.project()
    await imports.rows(`update project_clocks set floor = db_clock() + interval '1 hour' where project_id = $1`, [
      project.id,
    ])
    const { floor } = await imports.row('select floor from project_clocks where project_id = $1', [project.id])
    await imports.run(project, [line.profile()], { live: true })
    assert.ok((await column(project, 'profiles', 'updated_at', 'profile'))! >= floor!)
  })
})

test('a time more than five minutes ahead of the database is refused, a little less is not', async () => {
  const project = await imports.project()
  const ahead = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString()
  assert.equal((await imports.run(project, [line.profile({ created_at: ahead(320) })])).rejected, 1)
  assert.equal((await imports.run(project, [line.profile({ created_at: ahead(280) })])).written, 1)
})

test('a dry run answers the same and writes nothing', async () => {
  const project = await imports.project()
  await imports.run(project, [line.profile({ updated_at: T })])
  const lines = [
    line.profile({ updated_at: T, phone: '1' }),
    line.funnel(),
    line.payment(),
    line.profile({ updated_at: '2025-01-01T00:00:00Z' }),
  ]
  const { last_trx_created_at } = await imports.row(
    'select last_trx_created_at from organization_clocks where organization_id = $1',
    [project.organizationId],
  )
  const result = await imports.run(project, lines, { dryRun: true })
  assert.deepEqual(result, { ...all(3), read: 4, skipped: 1 })
  assert.equal(await column(project, 'profiles', 'phone', 'profile'), null)
  const clock = await imports.row('select last_trx_created_at from organization_clocks where organization_id = $1', [
    project.organizationId,
  ])
  assert.deepEqual(
    [await countOf(project, 'funnels'), await countOf(project, 'customers'), clock.last_trx_created_at],
    [0, 0, last_trx_created_at],
  )
  const { kept, recounted } = await countsOf(imports, project)
  assert.deepEqual(kept, recounted)
  assert.deepEqual({ ...(await imports.run(project, lines)) }, result)
})

describe('subscriptions of a profile', () => {
  const stampOf = (project: Project) => column(project, 'subscriptions', 'updated_at', 'subscription')
  const history = { updated_at: T }

  test('are stamped when its e-mail or preview mark changes, and at nothing else', async () => {
    const project = await imports.project()
    const lines = [line.product(), line.subscription(history)]
    await imports.run(project, [...lines, line.profile({ email: 'a@x', ...history })])
    const first = await stampOf(project)
    assert.equal(first, '2026-01-02 03:04:05.000006+00')
    await imports.run(project, [line.profile({ email: 'a@x', phone: '1', ...history })])
    assert.equal(await stampOf(project), first)
    const begin = await now()
    await imports.run(project, [line.profile({ email: 'b@x', ...history })])
    const second = (await stampOf(project))!
    assert.ok(second >= begin)
    await imports.run(project, [line.profile({ email: 'b@x', preview: true, ...history })])
    assert.ok((await stampOf(project))! > second)
  })

  test('keep that stamp when the file that brought them comes again', async () => {
    const project = await imports.project()
    const lines = [line.product(), line.subscription(history)]
    await imports.run(project, [...lines, line.profile({ email: 'a@x', ...history })])
    await imports.run(project, [...lines, line.profile({ email: 'b@x', ...history })])
    const stamp = await stampOf(project)
    await imports.run(project, [...lines, line.profile({ email: 'b@x', ...history })])
    assert.equal(await stampOf(project), stamp)
    await imports.run(project, [line.subscription({ updated_at: '2026-01-03T00:00:00Z', status: 'expired' })])
    assert.equal(await stampOf(project), '2026-01-03 00:00:00+00')
  })

  test('are not stamped by an older line that is skipped', async () => {
    const project = await imports.project()
    await imports.run(project, [line.product(), line.subscription(history), line.profile({ email: 'a@x', ...history })])
    await imports.run(project, [line.profile({ email: 'b@x', updated_at: '2025-01-01T00:00:00Z' })])
    assert.equal(await stampOf(project), '2026-01-02 03:04:05.000006+00')
  })
})

test('the counters are those of a recount after adding, moving, deleting and importing again', async () => {
  const project = await imports.project()
  const first = [
    line.funnel(),
    line.funnel({ id: 'gone', deleted_at: T }),
    line.product(),
    line.product({ id: 'other' }),
    line.profile({ funnel_id: 'funnel' }),
    line.profile({ id: 'second' }),
    line.session({ funnel_id: 'funnel' }),
    line.subscription({ payment_provider: 'stripe', funnel_id: 'funnel' }),
    line.subscription({ id: 'two', payment_provider: '' }),
    line.transaction(),
  ]
  const second = [
    line.funnel({ deleted_at: T }),
    line.funnel({ id: 'gone' }),
    line.profile({ funnel_id: 'gone' }),
    line.profile({ id: 'second', funnel_id: 'gone' }),
    line.session(),
    line.subscription({ status: 'expired', product_id: 'other' }),
    line.subscription({ id: 'two', payment_provider: 'stripe' }),
    line.subscription({ id: 'three' }),
    line.transaction({ price: 1 }),
  ]
  for (const lines of [first, first, second, second, [...first, ...second]]) {
    await imports.run(project, lines)
    const { kept, recounted } = await countsOf(imports, project)
    assert.deepEqual(kept, recounted)
  }
  const { kept } = await countsOf(imports, project)
  assert.deepEqual(
    kept.filter((text) => text.startsWith('subscriptions.')),
    [
      'subscriptions.=: 3',
      'subscriptions.payment_provider=stripe: 1',
      'subscriptions.product_id=other: 1',
      'subscriptions.product_id=product: 2',
      'subscriptions.status=active: 2',
      'subscriptions.status=expired: 1',
    ],
  )
})
