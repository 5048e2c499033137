// The audit log: read, and checked against itself.

import { auditHeadsPath } from '../audit/audit.ts'
import { verifyAudit } from '../audit/verify.ts'
import { Type } from '../lib/shape/schema.ts'
import { instant, integer, json, shape, text } from '../lib/shape/shape.ts'
import { list } from './list.ts'
import type { Operation, Reading } from './operation.ts'

const object = { schema: { type: 'object', additionalProperties: true }, nullable: true }

const entry = shape('AuditEntry', 'a', {
  sequence: integer('Number of the entry; none is left out.', { example: 1 }),
  at: instant('When.'),
  actor_kind: text('What acted.', { enum: ['operator key', 'command line', 'project key', 'tundish'] }),
  actor: text('Who: the id of a key, or the name of an account.'),
  source: text('The address a request came from, or the host a command ran on.'),
  action: text('What was done.', { example: 'webhook.created' }),
  target: text('To what.', { example: 'project shop' }),
  before: json('What was before.', object),
  after: json('What was after, or was asked for.', object),
})

const verify: Reading = {
  id: 'verifyAudit',
  command: 'audit verify',
  method: 'GET',
  path: '/audit/verify',
  tag: 'Audit',
  summary: 'Check that the audit log is whole',
  answer: Type.Object(
    {
      entries: Type.Integer({ description: 'How many entries there are.' }),
      known: Type.Integer({ description: 'Of how many this machine’s file knows.' }),
      wrong: Type.Array(Type.String(), { description: 'What is wrong; empty when nothing is.' }),
    },
    { title: 'AuditVerdict', additionalProperties: false },
  ),
  run: ({ db, seal, config }) => verifyAudit(db, seal, auditHeadsPath(config)),
}

export const auditLog: Operation[] = [
  list({
    id: 'listAuditEntries',
    command: 'audit list',
    columns: ['sequence', 'at', 'actor_kind', 'actor', 'action', 'target'],
    path: '/audit',
    tag: 'Audit',
    summary: 'List what operators did',
    shape: entry,
    from: 'audit_log a',
    key: 'a.sequence',
    isKey: (id) => /^[0-9]{1,18}$/.test(id),
    filters: {
      target: { schema: Type.String({ description: 'Done to this.' }), where: (value) => `a.target = ${value}` },
      actor: {
        schema: Type.String({ description: 'Done by this key or account.' }),
        where: (value) => `a.actor = ${value}`,
      },
    },
  }),
  verify,
]
