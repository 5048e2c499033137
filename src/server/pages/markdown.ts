// Renders a guide's Markdown as HTML: headings get anchors, links are rewritten for the server, HTML in the Markdown is escaped.
import { posix } from 'node:path'
import { Marked, type Tokens } from 'marked'
import { escapeHtml } from './page.ts'

export interface Rendered {
  title: string
  html: string
  /** The headings of the second level. */
  headings: { text: string; anchor: string }[]
}

/**
 * Renders the guide in the file `path` of the repository. `addressOf` returns the URL of another file, relative to this page, or
 * undefined if it is not served: a link to it becomes text.
 */
export function renderMarkdown(
  path: string,
  markdown: string,
  addressOf: (path: string) => string | undefined,
): Rendered {
  let title = path
  const headings: Rendered['headings'] = []
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text }: Tokens.Heading) {
        const plain = plainText(text)
        if (depth === 1) title = plain
        if (depth === 2) headings.push({ text: plain, anchor: anchor(text) })
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
  return { title, html, headings }
}

/** The Markdown with its links to other files rewritten by `addressOf`; a link to a file that is not served becomes text. */
export function withLinks(path: string, markdown: string, addressOf: (path: string) => string | undefined): string {
  return markdown.replaceAll(/(!?)\[([^\]]*)\]\(([^)\s]+)\)/g, (_whole, image: string, text: string, href: string) => {
    const address = resolveLink(path, href, addressOf)
    return address === undefined ? text : `${image}[${text}](${address})`
  })
}

/** A heading without the marks of code and links. */
const plainText = (heading: string) => heading.replaceAll(/`|\[([^\]]*)\]\([^)]*\)/g, '$1')

function resolveLink(path: string, href: string, addressOf: (path: string) => string | undefined): string | undefined {
  if (/^https?:/.test(href) || href.startsWith('#')) return href
  const [file, fragment] = href.split('#') as [string, string | undefined]
  const address = addressOf(posix.normalize(posix.join(posix.dirname(path), file)))
  return address === undefined || fragment === undefined ? address : `${address}#${fragment}`
}

/** The anchor of a heading as GitHub makes it, so that the same links work there and here. */
const anchor = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-')
