// Whether the keys of a project may write what decides whose card is charged.
import { Type } from '../../lib/shape/schema.ts'
import { change } from './operation.ts'

const write_payments = Type.Boolean({
  description: 'Whether keys of the project may write payments, customers and merchant accounts by `POST /records`.',
})

const setting = change({
  id: 'setProjectWritePayments',
  command: 'project set',
  right: 'manage',
  // The merchant accounts are those of all projects of the organization.
  ofOrganization: true,
  method: 'PUT',
  path: '/projects/:project_id/write-payments',
  tag: 'Tenants',
  summary: 'Let the keys of a project write payments, or not',
  description:
    'By default payments, customers and merchant accounts need an import by an operator, because they decide whose card is charged.',
  body: Type.Named('WritePaymentsSetting', { write_payments }),
  response: Type.Named('WritePayments', { write_payments }),
  async change(query, { params, body }) {
    const { write_payments: after } = body
    const [old] = await query('select write_payments from projects where id = $1 for no key update', [
      params.project_id,
    ])
    await query('update projects set write_payments = $2 where id = $1', [params.project_id, after])
    const entry = {
      action: 'write_payments.set',
      target: `project ${params.project_id}`,
      before: { write_payments: old!.write_payments === 't' },
      after: { write_payments: after },
    }
    return { entry, result: { write_payments: after } }
  },
})

export const writePayments = [setting] as const
