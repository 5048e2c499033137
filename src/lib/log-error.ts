// What a log line may say of an error: everything but the values of a row, which PostgreSQL likes to quote.
import pg from 'pg'
import { stdSerializers } from 'pino'

// Data that does not fit its type, and rows against a constraint: these messages repeat what stood in the row.
const QUOTING = /^2[23]/

/** The serializer of `err`. Of PostgreSQL's errors neither detail nor context is kept, and of some not the message. */
export function errorForLog(error: Error): object {
  if (!(error instanceof pg.DatabaseError)) return stdSerializers.err(error)
  const { code, message, table, column, constraint, routine, stack = '' } = error
  const frames = stack.slice(stack.indexOf('\n    at '))
  return {
    type: 'DatabaseError',
    message: QUOTING.test(code ?? '') ? undefined : message,
    ...{ code, table, column, constraint, routine },
    stack: frames.trim(),
  }
}
