// Keys that are sent in the wrong place: no response and no log line repeats them.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { tundish } from '../../support/cli.ts'
import { startTestServer } from '../../support/server.ts'

const SECRETS = [
  'secret_kJ8-x0Yq_Zt3mWv5aBc7dEf9gHi1jKl3mNo5pQr7sTu',
  'operator_0123456789abcdef',
  'whsec_c2VjcmV0X2tKOC14MFlxX1p0Mw==',
]

const server = await startTestServer()
const project = await server.project()
after(() => server.stop())

for (const secret of SECRETS) {
  test(`${secret.slice(0, 10)}… is not repeated, wherever it stood`, async () => {
    const prefix = secret.slice(0, secret.indexOf('_') + 1)
    const { key } = project
    const json = (body: object | string) => server.api('/profiles/anonymize', { key, method: 'POST', body })
    const named = encodeURIComponent(secret)
    const responses = {
      unknownParameter: await server.api(`/funnels?${named}=1`, { key }),
      parameter: await server.api(`/funnels?limit=${named}`, { key }),
      cursor: await server.api(`/funnels?cursor=${named}`, { key }),
      id: await server.api(`/funnels/${named}`, { key }),
      idInText: await server.api(`/funnels/x${encodeURIComponent(` ${secret}`)}`, { key }),
      idInWord: await server.api(`/funnels/key${named}`, { key }),
      idOnNextLine: await server.api(`/funnels/%0A${named}`, { key }),
      path: await server.api(`/${named}`, { key }),
      unknownProperty: await json({ [secret]: 1 }),
      property: await json({ profile_ids: secret }),
      item: await json({ profile_ids: [{ [secret]: 1 }] }),
      notFound: await json({ profile_ids: [secret] }),
      notFoundOnNextLine: await json({ profile_ids: [`\t${secret}`, `\u001f${secret}`] }),
      duplicate: await json(`{"${secret}": 1, "${secret}": 2}`),
      mediaType: await server.api('/profiles/anonymize', {
        key,
        method: 'POST',
        body: '{}',
        headers: ['Content-Type', `text/${secret}`],
      }),
      requestId: await server.api('/funnels?x=1', { key, headers: ['X-Request-Id', secret] }),
      host: await server.call('/nothing', { headers: ['Host', secret] }),
    }
    for (const [place, { status, text, headers }] of Object.entries(responses)) {
      assert.ok(status >= 400, `${place}: ${status}`)
      assert.ok(!(text + JSON.stringify(headers)).includes(secret.slice(0, 16)), `${place}: ${text}`)
    }
    assert.equal(responses.id.body.message, `There is no funnel with the id "${prefix}…".`)
    // A path that is no UTF-8 is repeated as it was sent.
    const { body } = await server.api(`/funnels/${named.replace('_', '%5F')}%FF`, { key })
    assert.equal(body.message, `There is no funnel with the id "${prefix}…".`)
    assert.ok(!server.logLines().join('').includes(secret.slice(0, 16)))
  })
}

test('the command that imports does not repeat a key of a bad line', async () => {
  const lines = SECRETS.map((record) => JSON.stringify({ record, data: {} })).join('\n')
  const { code, stderr } = await tundish(['import', '--project', project.id, '-'], server.env, lines)
  assert.equal(code, 1, stderr)
  assert.match(stderr, /stdin:1: "record" must be one of .*, got "secret_…"\nstdin:2: .*, got "operator_…"\n/)
  for (const secret of SECRETS) assert.ok(!stderr.includes(secret.slice(0, 12)), stderr)
})

test('a setting that holds a key by mistake is not repeated', async () => {
  const { code, stderr } = await tundish(['doctor'], { ...server.env, PORT: SECRETS[0]! })
  assert.deepEqual([code, stderr], [2, 'PORT must be a whole number from 0 to 65535, got "secret_…".\n'])
})
