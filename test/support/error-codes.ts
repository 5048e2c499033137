// Every refusal that a test provokes must carry a described `X-Error-Code` of its status; checked in the tests' clients.
import assert from 'node:assert/strict'
import { OPERATOR_CODES, PUBLIC_CODES } from '../../src/records/error-codes.ts'

const TABLES = { public: PUBLIC_CODES, operator: OPERATOR_CODES }

/** Fails when the answer of this listener is an error without its code, or no error and has one. */
export function checkErrorCode(listener: keyof typeof TABLES, status: number, code: string | undefined): void {
  if (status < 400) assert.equal(code, undefined, `a ${status} has the error code ${code}`)
  else assert.equal(TABLES[listener][code ?? '']?.status, status, `a ${status} has the error code ${code}`)
}
