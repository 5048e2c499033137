// Bad lines of an import: each is reported with its place, nothing is written, or the rest without them if so told.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { KINDS } from '../../../src/core/records/records.ts'
import { line, openImports } from '../../support/imports.ts'

const imports = await openImports()
after(() => imports.stop())

describe('a bad line', () => {
  test('rejects the whole import, and each is reported with its place', async () => {
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
      unchanged: 0,
      skipped: 0,
      erased: 0,
      rejected: 3,
      rejects: [
        {
          source: 'file',
          line: 3,
          code: 'invalid_json',
          reason: 'not JSON: column 2: expected a name in double quotes',
        },
        { source: 'file', line: 5, code: 'unknown_field', reason: 'profile has no field "mail"' },
        {
          source: 'file',
          line: 4,
          code: 'unknown_reference',
          reason: 'session.profile_id refers to an unknown profile: nobody',
        },
      ],
    })
    assert.equal(await imports.count(project, 'profiles'), 0)
  })

  for (const secret of [
    'secret_kJ8-x0Yq_Zt3mWv5aBc7dEf9gHi1jKl3mNo5pQr7sTu',
    'operator_0123456789abcdef',
    'whsec_c2VjcmV0X2tKOC14MFlxX1p0Mw==',
    'sk_live_51HgkQ2eZvKYlo2C0123',
  ])
    test(`does not repeat ${secret.slice(0, 8)}… in its reason, wherever the key is in it`, async () => {
      const project = await imports.project()
      const inFields = Object.values(line).flatMap((build) => {
        const { record, data } = build()
        const { fields } = KINDS.find(({ name }) => name === record)!
        const values = [secret, `${' '.repeat(50)}${secret}`, { [secret]: 1 }, [secret], [{ [secret]: secret }]]
        return fields.flatMap(({ name }) => values.map((value) => ({ record, data: { ...data, [name]: value } })))
      })
      const lines = [
        ...inFields,
        { record: secret, data: {} },
        { record: `${'x'.repeat(50)}${secret}`, data: {} },
        JSON.stringify({ record: 'profile', data: secret }),
        `{"record": "profile", "data": {"id": ${secret}}}`,
        `{"record": "profile", "data": {"${secret}": 1, "${secret}": 2}}`,
        `{"record": "profile", "data": {"${secret}": 1e400}}`,
        `{"record": "profile", "${secret}": {}, "data": {}}`,
        line.profile({ [secret]: 1 }),
        // The ids that are nothing but the key are stored by now.
        line.session({ profile_id: `${secret}_lost` }),
        secret,
      ]
      let reasons = 0
      // A result has the first hundred reasons.
      for (let at = 0; at < lines.length; at += 100) {
        const { rejects, rejected } = await imports.run(project, lines.slice(at, at + 100), { skipBadLines: true })
        assert.equal(rejects.length, rejected)
        reasons += rejected
        const hidden = secret.slice(secret.lastIndexOf('_', 9) + 1).slice(0, 4)
        for (const { reason } of rejects) assert.ok(!reason.includes(hidden), reason)
      }
      assert.ok(reasons > 200, `${reasons} lines were bad`)
    })

  test('is left out on request with all lines that refer to it, and returned as it came', async () => {
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
      { read: 9, written: 3, unchanged: 0, skipped: 0, erased: 0, rejected: 6, rejects: [] },
    )
    assert.equal(given, bad.map((text) => `file:${text}\n`).join(''))
    assert.deepEqual(
      result.rejects.map(({ line: number, reason }) => `${number}: ${reason}`),
      [
        '1: profile.created_at is missing',
        '2: session.profile_id refers to an unknown profile: bad',
        '3: reply.session_id refers to an unknown session: lost',
        '4: subscription.session_id refers to an unknown session: lost',
        '5: transaction.subscription_id refers to an unknown subscription: subscription',
        '6: customer.profile_id refers to an unknown profile: bad',
      ],
    )
    assert.deepEqual([await imports.count(project, 'profiles'), await imports.count(project, 'sessions')], [1, 1])
  })

  test('that is too long or not UTF-8 is returned byte by byte', async () => {
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

  test('ends the reading when it is the hundredth', async () => {
    const bad = Array.from({ length: 150 }, () => '{}')
    const result = await imports.run(await imports.project(), [line.profile(), ...bad])
    assert.deepEqual(
      [result.stopped, result.read, result.rejected, result.rejects.length, result.rejects[99]!.line],
      [true, 101, 100, 100, 101],
    )
    const skipped = await imports.run(await imports.project(), bad, { skipBadLines: true })
    assert.deepEqual([skipped.stopped, skipped.rejected, skipped.rejects.length], [undefined, 150, 100])
  })

  test('is reported before the lines that refer to it, and those before the lines that refer to them', async () => {
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
        [3, 'session.experiment_id refers to an unknown experiment: bad'],
        [101, 'session.experiment_id refers to an unknown experiment: bad'],
      ],
    )
  })
})
