// The stylesheet and the icon of the pages.
import type { FastifyInstance } from 'fastify'

/** Serves `/docs/pages.css`, `/favicon.svg`, and `/favicon.ico`, which browsers request by default. */
export function serveAssets(listener: FastifyInstance): void {
  const headers = { 'cache-control': 'max-age=3600', 'x-content-type-options': 'nosniff' }
  const hidden = { schema: { hide: true } as object }
  listener.get('/docs/pages.css', hidden, async (_request, reply) =>
    reply.headers(headers).type('text/css; charset=utf-8').send(STYLES),
  )
  listener.get('/favicon.svg', hidden, async (_request, reply) =>
    reply.headers(headers).type('image/svg+xml').send(ICON),
  )
  listener.get('/favicon.ico', hidden, async (_request, reply) => reply.redirect('favicon.svg', 308))
}

// A tundish: the vessel from which molten metal flows into the mold.
const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
<rect width="32" height="32" rx="7" fill="#1d3557"/>
<path d="M6 8h20l-4 10h-4v3h-4v-3h-4z" fill="#f1a661"/>
<path d="M14.5 23h3v4h-3z" fill="#f1a661"/>
</svg>
`

const STYLES = `:root {
  color-scheme: light dark;
  --text: light-dark(#1f2430, #e4e7ee);
  --quiet: light-dark(#5b6475, #9aa4b5);
  --ground: light-dark(#ffffff, #14171d);
  --raised: light-dark(#f5f6f9, #1d222b);
  --line: light-dark(#dfe3ea, #323946);
  --link: light-dark(#1d4f91, #86b6f2);
}
* { box-sizing: border-box }
body {
  margin: 0 auto; padding: 1.5rem 1.25rem 4rem; max-width: 52rem;
  background: var(--ground); color: var(--text);
  font: 1rem/1.6 system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; overflow-wrap: break-word;
}
nav { font-size: .9rem; color: var(--quiet); border-bottom: 1px solid var(--line); padding-bottom: .6rem }
nav a { margin-right: 1rem }
h1, h2, h3 { line-height: 1.25; text-wrap: balance; scroll-margin-top: 1rem }
h1 { font-size: 1.9rem } h2 { margin-top: 2.4rem; font-size: 1.35rem } h3 { margin-top: 1.8rem; font-size: 1.08rem }
a { color: var(--link) }
a:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; border-radius: 2px }
code, pre { font: .88em/1.55 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace }
code { background: var(--raised); border-radius: 4px; padding: .1em .3em }
pre { background: var(--raised); border: 1px solid var(--line); border-radius: 8px; padding: .9rem 1rem; overflow-x: auto }
pre code { background: none; padding: 0; font-size: inherit }
.scroll { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-size: .94rem }
th, td { text-align: left; vertical-align: top; padding: .45rem .9rem .45rem 0; border-bottom: 1px solid var(--line) }
blockquote { margin: 1rem 0; padding-left: 1rem; border-left: 3px solid var(--line); color: var(--quiet) }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .35rem 1.25rem }
dt { color: var(--quiet) } dd { margin: 0 }
img { max-width: 100%; height: auto; border: 1px solid var(--line); border-radius: 8px }
.quiet { color: var(--quiet) }
@media (max-width: 30rem) { dl { grid-template-columns: 1fr; gap: 0 } dd { margin-bottom: .6rem } }
@media print { nav { display: none } pre { white-space: pre-wrap } }
`
