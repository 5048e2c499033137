// Classifies errors of PostgreSQL and of the connection: retry later, retry at once, or fail.
import pg from 'pg'
import { whyUntrusted } from './database-url.ts'

const CLASHES = new Set(['40001', '40P01'])
const PROTOCOL_VIOLATION = '08P01'

/** The five characters of the SQLSTATE, if this is an error of PostgreSQL. */
export function sqlState(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}

/**
 * The classes of errors about data: values that do not fit their type (22), rows that break a constraint (23), and what exceeds a
 * limit, such as the size of an index entry (54).
 */
export const REFUSED_CLASSES = ['22', '23', '54']

/** Whether PostgreSQL refused the data, so that another try would fail too. */
export function isRefusedData(error: unknown): error is pg.DatabaseError {
  return error instanceof pg.DatabaseError && REFUSED_CLASSES.includes(error.code?.slice(0, 2) ?? '')
}

/** Whether a write failed because the server is a standby or read-only. Another host may be the primary now. */
export function isReadOnly(error: unknown): boolean {
  return sqlState(error) === '25006'
}

/** Whether a statement was cancelled by a timeout. */
export function isTimeout(error: unknown): boolean {
  return sqlState(error) === '57014'
}

/** Whether a statement was ended because it waited too long for a lock. */
export function isLockTimeout(error: unknown): boolean {
  return sqlState(error) === '55P03'
}

/** Whether a row was refused because another one has its key. */
export function isDuplicate(error: unknown): boolean {
  return sqlState(error) === '23505'
}

/** Whether a transaction failed by a deadlock or a serialization failure. */
export function isClash(error: unknown): boolean {
  return CLASHES.has(sqlState(error) ?? '')
}

/** Whether a write was refused because the rows of its tenant are being moved to another database. */
export function isMoving(error: unknown): boolean {
  return sqlState(error) === '57PTU'
}

/** Whether the database could not be reached, was not trusted, or refused to work. The caller may try again later. */
export function isUnavailable(error: unknown): boolean {
  const state = sqlState(error)
  // Without FATAL it is a statement with the wrong number of parameters, a bug. With FATAL a pooler ended the connection.
  if (state === PROTOCOL_VIOLATION) return (error as { severity?: unknown }).severity === 'FATAL'
  // 25006 is a read-only server, 25P03 and 25P04 a transaction that was idle or took too long, 53… out of connections,
  // memory or disk, 58… its files.
  if (state && (/^(08|25P03|25P04|53|57P|58)/.test(state) || isTimeout(error) || isReadOnly(error))) return true
  // PostgreSQL's own internal errors name a routine. A pooler that has no server for its client sends one without.
  if (error instanceof pg.DatabaseError && state === 'XX000' && error.routine === undefined) return true
  if (whyUntrusted(error) !== undefined) return true
  // The error for a host with several addresses, one of which may be of a network without a route.
  if (error instanceof AggregateError) return error.errors.every(isUnavailable)
  const { code = '', message = '', syscall = '' } = error as { code?: string; message?: string; syscall?: string }
  return CONNECTING.has(syscall) || BROKEN.has(code) || UNCONNECTED.test(message)
}

// With any code: a socket that is missing or that this user may not open, a network without a route.
const CONNECTING = new Set(['connect', 'getaddrinfo'])
const BROKEN = new Set([
  'EAI_AGAIN',
  'ECONNABORTED',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETDOWN',
  'ENETUNREACH',
  'ENOTFOUND',
  'EPIPE',
  'ETIMEDOUT',
])
const UNCONNECTED =
  /^(Connection terminated|timeout e(xceeded|xpired)|Client has encountered a connection error|Client was closed|Cannot use a pool after calling end|There was an error establishing an SSL connection)/

/** Whether the address has no password and the server requires one, or the server does not know it. These errors of `pg` have no code. */
export function isPasswordRefused(error: unknown): boolean {
  return /^SASL: /.test((error as { message?: string }).message ?? '')
}

/** Where and by which SQLSTATE PostgreSQL refused data, without its own message, which may quote the values of a row. */
export function placeOfRefusal({ code, table, column, constraint }: pg.DatabaseError): string {
  const place = [table && `table ${table}`, column && `column ${column}`, constraint && `rule ${constraint}`]
  return [code, place.filter(Boolean).join(', ')].filter(Boolean).join('; ')
}

/** Why a database is unavailable, in a few words. Node's error for a host with several addresses has a code alone. */
export function causeOf(error: unknown): string {
  const { code, message = '' } = error as { code?: string; message?: string }
  if (/^SASL: .* client password must be/.test(message)) return 'it requires a password, and the address has none'
  return message || code || 'no reason was given'
}
