// Formats a JSON line of the log for a terminal, coloured unless NO_COLOR is set.
import { styleText } from 'node:util'

type Style = Parameters<typeof styleText>[0]
type Line = Record<string, unknown>

// pino's numbers.
const LEVELS: Record<number, [name: string, style: Style]> = {
  10: ['trace', 'dim'],
  20: ['debug', 'dim'],
  30: ['', 'reset'],
  40: ['warning', 'yellow'],
  50: ['error', 'red'],
  60: ['fatal', ['red', 'bold']],
}

/** `14:03:21  GET /some/path 200 4 ms`, or `14:03:21  warning  …`; other text is returned unchanged. */
export function readableLine(json: string, stream: NodeJS.WritableStream): string {
  const line = parse(json)
  if (!line) return json
  const style = (styles: Style, text: string) => styleText(styles, text, { stream })
  const { level, time, msg, err, ...fields } = line
  const [name, color] = LEVELS[level as number] ?? ['', 'reset']
  const parts = [
    style('dim', new Date(String(time)).toTimeString().slice(0, 8)),
    ...(name ? [style(color, name)] : []),
    ...(msg === undefined && fields.status !== undefined ? [requestOf(fields, style)] : [String(msg ?? '')]),
    ...rest(msg === undefined ? others(fields) : fields).map((text) => style('dim', text)),
  ]
  return `${parts.join('  ')}\n${err === undefined ? '' : `${indented(err as Line)}\n`}`
}

function parse(json: string): Line | undefined {
  try {
    return JSON.parse(json) as Line
  } catch {
    return undefined
  }
}

const STATUS_STYLES: Style[] = ['reset', 'reset', 'green', 'cyan', 'yellow', 'red']

function requestOf(fields: Line, style: (styles: Style, text: string) => string): string {
  const status = String(fields.status)
  const { method = '', route = '', duration_ms } = fields
  const took = duration_ms === undefined ? '' : ` ${Math.round(Number(duration_ms))} ms`
  return `${method} ${route} ${style(STATUS_STYLES[Number(status[0])] ?? 'reset', status)}${took}`.trimStart()
}

/** Leaves out the ids of a successful request: they matter when something failed. */
function others({ method: _method, route: _route, status, duration_ms: _took, trace_id: _trace, ...fields }: Line) {
  const { request_id, ...ids } = fields
  return Number(status) < 500 ? ids : { request_id, ...ids }
}

const rest = (fields: Line) =>
  Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)

/** Formats an error: its stack, and below it its other fields. */
function indented({ stack, message, ...more }: Line): string {
  const known = Object.entries(more).map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
  return [String(stack ?? message), ...known].join('\n').replaceAll(/^/gm, '    ')
}
