// Turns a guide's Markdown into HTML: headings with anchors, links that fit the server, and no HTML of the guide's own.
import { posix } from 'node:path'
import { Marked, type Tokens } from 'marked'
import { escapeHtml } from './page.ts'

export interface Rendered {
  title: string
  html: string
}

/**
 * Renders the guide at `path` of the checkout. `addressOf` returns the address of another file of the checkout, seen from
 * this page, or undefined when it is not served: its link becomes text.
 */
export function renderMarkdown(path: string, markdown: string, addressOf: (path: string) => string | undefined) {
  let title = path
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text }: Tokens.Heading) {
        if (depth === 1) title = text
        return `<h${depth} id="${anchor(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`
      },
      link({ href, tokens }: Tokens.Link) {
        const text = this.parser.parseInline(tokens)
        const address = resolveLink(path, href, addressOf)
        return address === undefined ? text : `<a href="${escapeHtml(address)}">${text}</a>`
      },
      html: ({ text }) => escapeHtml(text),
      image({ href, text }: Tokens.Image) {
        const address = resolveLink(path, href, addressOf)
        const alt = escapeHtml(text)
        return address === undefined ? `<em>${alt}</em>` : `<img src="${escapeHtml(address)}" alt="${alt}">`
      },
      table(token: Tokens.Table) {
        const row = (tag: string, cells: Tokens.TableCell[]) =>
          `<tr>${cells.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join('')}</tr>\n`
        const head = token.header.some(({ text }) => text !== '') ? `<thead>${row('th', token.header)}</thead>` : ''
        const rows = token.rows.map((cells) => row('td', cells)).join('')
        return `<div class="scroll"><table>${head}<tbody>${rows}</tbody></table></div>\n`
      },
    },
  })
  const html = marked.parse(markdown, { async: false })
  return { title, html } satisfies Rendered
}

function resolveLink(path: string, href: string, addressOf: (path: string) => string | undefined): string | undefined {
  if (/^https?:/.test(href) || href.startsWith('#')) return href
  const [file, fragment] = href.split('#') as [string, string | undefined]
  const address = addressOf(posix.normalize(posix.join(posix.dirname(path), file)))
  return address === undefined || fragment === undefined ? address : `${address}#${fragment}`
}

/** The anchor that a heading gets on the usual hosts of repositories, so that links work there and here. */
const anchor = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-')
