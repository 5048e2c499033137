// The errors of the dialect, in the form of Primer's API.
import { DialectError } from '../dialect.ts'

export class PrimerError extends DialectError {
  constructor(status: number, errorId: string, description: string, more: object = {}) {
    super(status, { errorId, description, diagnosticsId: '1234567890', ...more }, description)
  }
}

export const invalid = (path: string, description: string) =>
  new PrimerError(422, 'RequestValidationError', 'We were unable to validate your request.', {
    validationErrors: [{ model: 'Request', errors: [{ path: `$.${path}`, description }] }],
  })

export const notFound = () => new PrimerError(400, 'PaymentError', 'The payment could not be found')
