// Serializes errors for the log without the values of rows, which PostgreSQL quotes in its messages.
import pg from 'pg'
import { stdSerializers } from 'pino'

// Values that do not fit their type, and rows that violate a constraint: these messages quote values of the row.
const QUOTING = /^2[23]/

/** The serializer of `err`. Of PostgreSQL's errors neither detail nor context is kept, and of some not the message. */
export function errorForLog(error: Error): object {
  if (!(error instanceof pg.DatabaseError)) return stdSerializers.err(error)
  const { code, message, table, column, constraint, routine, stack = '' } = error
  const frames = stack.slice(stack.indexOf('\n    at '))
  return {
    type: 'DatabaseError',
    message: QUOTING.test(code ?? '') ? undefined : message,
    code,
    table,
    column,
    constraint,
    routine,
    stack: frames.trim(),
  }
}
