// The guides and the reference as Markdown, and /llms.txt, the list of them: for language models and other programs that read.
import type { FastifyInstance } from 'fastify'
import { type Document, referenceText } from '../../lib/http/reference-text.ts'
import { CONTENTS } from './contents.ts'

const HIDDEN = { schema: { hide: true } as object }

/** Headers of a text that a browser shows and never interprets. */
export const TEXT_HEADERS = { 'x-content-type-options': 'nosniff', 'cache-control': 'max-age=300' }

/** Serves `/llms.txt` and `/docs.md`. `titlesOf` returns the titles of guides by their names. */
export function serveTexts(
  listener: FastifyInstance,
  titlesOf: (names: string[]) => Promise<Map<string, string>>,
): void {
  let reference: string | undefined
  listener.get('/docs.md', HIDDEN, async (_request, reply) => {
    reference ??= referenceText(listener.swagger() as unknown as Document)
    return reply.headers(TEXT_HEADERS).type('text/markdown; charset=utf-8').send(reference)
  })
  listener.get('/llms.txt', HIDDEN, async (_request, reply) => {
    const titles = await titlesOf(CONTENTS.flatMap(({ entries }) => entries.map(({ name }) => name)))
    return reply.headers(TEXT_HEADERS).type('text/plain; charset=utf-8').send(listText(titles))
  })
}

function listText(titles: Map<string, string>): string {
  const groups = CONTENTS.map(({ title, entries }) => {
    const lines = entries.map(({ name, about }) => `- [${titles.get(name)}](docs/guides/${name}.md): ${about}`)
    return `## ${title}\n\n${lines.join('\n')}\n`
  })
  return `# Tundish

> The backend for web funnels that sell subscriptions: a data API (\`/public/v1\`), a billing API that charges a saved card exactly once
> (\`/ORGANIZATION/v1\`), and an operator's API. All are for servers: every call needs a secret key.

## Reference

- [The reference as Markdown](docs.md): every operation of this listener with its parameters, bodies and responses.
- [The OpenAPI description](openapi.json): the same for programs.

${groups.join('\n')}`
}
