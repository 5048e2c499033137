// The settings of the mail server, and of the dashboard's address that messages link to.

export interface MailSettings {
  /** With the password, if the server needs one. */
  url: string
  from: { name: string; address: string }
}

// Rules of e-mail addresses are not checked further: the mail server knows them.
const ADDRESS = /^[^\s@<>",;:]+@[^\s@<>",;:]+$/
const NAMED = /^([^<>\r\n]*)<([^<>]+)>$/

/** Whether a text is one e-mail address. */
export const isMailAddress = (text: string): boolean => text.length <= 254 && ADDRESS.test(text)

/** Undefined without a mail server. No value is repeated in a mistake: the URL has a password. */
export function readMail(
  { url, from }: { url: string | undefined; from: string | undefined },
  mistakes: string[],
): MailSettings | undefined {
  if (url === undefined) {
    if (from !== undefined) mistakes.push('SMTP_FROM needs SMTP_URL, the mail server.')
    return undefined
  }
  if (!/^smtps?:\/\/./.test(url) || !URL.canParse(url) || new URL(url).hostname === '')
    mistakes.push('SMTP_URL must be a URL that begins with smtp:// or smtps://, with the host of a mail server.')
  if (from === undefined) mistakes.push('SMTP_URL needs SMTP_FROM, the address that messages are from.')
  const [, name = '', address = from ?? ''] = NAMED.exec(from ?? '') ?? []
  if (from !== undefined && !isMailAddress(address))
    mistakes.push('SMTP_FROM must be an e-mail address such as tundish@example.com, or Tundish <tundish@example.com>.')
  return { url, from: { name: withoutQuotes(name.trim()), address } }
}

/** Quotes are for programs that read the name by the syntax of mail headers. Ours is encoded when it is sent. */
const withoutQuotes = (name: string) => (/^".*"$/.test(name) ? name.slice(1, -1).replace(/\\(.)/g, '$1') : name)

/** The address without a slash at its end; undefined without the setting. */
export function readDashboardUrl(value: string | undefined, mistakes: string[]): string | undefined {
  if (value === undefined) return undefined
  const url = URL.canParse(value) ? new URL(value) : undefined
  const isPlain = url && /^https?:$/.test(url.protocol) && !url.username && !url.password && !url.search && !url.hash
  if (!isPlain || url.pathname !== '/')
    mistakes.push('DASHBOARD_URL must be an address such as https://tundish.example.com, without a path.')
  return url?.origin
}
