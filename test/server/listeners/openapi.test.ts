// The description and its page as they are served. The page in a browser: browser.slow.test.ts.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setUpListener } from './listener.ts'

for (const side of ['public', 'operator'] as const) {
  describe(`the description of the ${side} listener`, () => {
    const site = setUpListener(side)

    test('/openapi.json is the document of the routes', async () => {
      const response = await fetch(`${site.url}/openapi.json`)
      assert.equal(response.status, 200)
      assert.match(response.headers.get('content-type') ?? '', /^application\/json/)
      assert.deepEqual(await response.json(), JSON.parse(JSON.stringify(site.listener.swagger())))
    })

    test('200 for /docs, and /docs/ leads there', async () => {
      for (const path of ['/docs', '/docs/']) {
        const response = await fetch(site.url + path)
        assert.equal(response.status, 200)
        assert.equal(response.url, `${site.url}/docs`)
        assert.match(await response.text(), /<title>Tundish reference<\/title>/)
      }
    })
  })
}
