// The JSON of a response's body, and why a body has none.
import { readExact } from '../../../lib/json/exact.ts'

/** The JSON of the body; undefined if it is none. */
export function bodyOf(bytes: Buffer): unknown {
  try {
    return readExact(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}

/** An HTML page with status 200 is that of a dashboard, or of a proxy that asks for a login. */
export function notJson(headers: Headers): string {
  const isPage = headers.get('content-type')?.startsWith('text/html')
  return `returned a body that is not complete JSON${isPage ? ', but an HTML page: check the address' : ''}`
}
