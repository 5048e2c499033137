// The errors of the dialect, in the form of Primer's API.

export class PrimerError extends Error {
  readonly status: number
  readonly body: { errorId: string; description: string; diagnosticsId: string }

  constructor(status: number, errorId: string, description: string, more: object = {}) {
    super(description)
    this.status = status
    this.body = { errorId, description, diagnosticsId: '1234567890', ...more }
  }
}

export const invalid = (path: string, description: string) =>
  new PrimerError(422, 'RequestValidationError', 'We were unable to validate your request.', {
    validationErrors: [{ model: 'Request', errors: [{ path: `$.${path}`, description }] }],
  })

export const notFound = () => new PrimerError(400, 'PaymentError', 'The payment could not be found')
