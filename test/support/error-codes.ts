// Checks that every refusal in a test has a described `X-Error-Code` of its status; used by the tests' clients.
import assert from 'node:assert/strict'
import { OPERATOR_CODES, PUBLIC_CODES } from '../../src/core/records/error-codes.ts'

const TABLES = { public: PUBLIC_CODES, operator: OPERATOR_CODES }

/** Fails if a response of this listener is an error without its code, or a success with one. */
export function checkErrorCode(listener: keyof typeof TABLES, status: number, code: string | undefined): void {
  if (status < 400) assert.equal(code, undefined, `a ${status} has the error code ${code}`)
  else assert.equal(TABLES[listener][code ?? '']?.status, status, `a ${status} has the error code ${code}`)
}
