// The description and its page as they are served. The page in a browser: browser.slow.test.ts.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { unconnectedListener } from '../../../scripts/openapi.ts'

for (const side of ['public', 'operator'] as const) {
  describe(`the description of the ${side} listener`, () => {
    let listener: FastifyInstance
    let url: string
    before(async () => {
      listener = await unconnectedListener(side)
      url = await listener.listen({ host: '127.0.0.1', port: 0 })
    })
    after(() => listener.close())

    test('/openapi.json is the document of the routes', async () => {
      const response = await fetch(`${url}/openapi.json`)
      assert.equal(response.status, 200)
      assert.match(response.headers.get('content-type') ?? '', /^application\/json/)
      assert.deepEqual(await response.json(), JSON.parse(JSON.stringify(listener.swagger())))
    })

    test('200 for /docs, and /docs/ leads there', async () => {
      for (const path of ['/docs', '/docs/']) {
        const response = await fetch(url + path)
        assert.equal(response.status, 200)
        assert.equal(response.url, `${url}/docs`)
        assert.match(await response.text(), /<title>Tundish reference<\/title>/)
      }
    })
  })
}
