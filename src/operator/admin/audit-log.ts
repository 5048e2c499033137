// The audit log: its list, and the check of its chain.
import { auditHeadsPath } from '../../core/audit/audit.ts'
import { verifyAudit } from '../../core/audit/verify.ts'
import { type Schema, Type } from '../../lib/shape/schema.ts'
import { instant, integer, json, shape, text } from '../../lib/shape/shape.ts'
import { utcDayFilters } from './day-filters.ts'
import { equals, list } from './list.ts'
import { reading } from './operation.ts'

const object = {
  schema: { type: 'object', additionalProperties: true } as Schema<Record<string, unknown>>,
  nullable: true,
}

const entry = shape('AuditEntry', 'a', {
  sequence: integer('Number of the entry, without gaps.', { example: 1 }),
  at: instant('When it was done.'),
  actor_kind: text('Kind of the actor.', {
    enum: ['operator key', 'person', 'command line', 'project key', 'organization key', 'tundish'],
  }),
  actor: text('Id of a key, or name of a person or an account.'),
  source: text('The address a request came from, or the host a command ran on.'),
  action: text('What was done.', { example: 'webhook.created' }),
  target: text('The object.', { example: 'project shop' }),
  before: json('State before.', object),
  after: json('State after, or the request.', object),
})

const verify = reading({
  id: 'verifyAudit',
  right: 'setup',
  command: 'audit verify',
  path: '/audit/verify',
  tag: 'Audit',
  summary: 'Check that the audit log is intact',
  response: Type.Named('AuditVerdict', {
    entries: Type.Integer({ description: 'Number of entries.' }),
    known: Type.Integer({ description: 'Number of entries that are also in the file on this machine.' }),
    wrong: Type.Array(Type.String(), { description: 'Each fault in a sentence; empty if the log is intact.' }),
  }),
  run: ({ db, seal, config }) => verifyAudit(db, seal, auditHeadsPath(config)),
})

export const auditLog = [
  list({
    id: 'listAuditEntries',
    right: 'setup',
    command: 'audit list',
    columns: ['sequence', 'at', 'actor_kind', 'actor', 'action', 'target'],
    path: '/audit',
    tag: 'Audit',
    summary: 'List the actions of operators',
    shape: entry,
    from: 'audit_log a',
    key: 'a.sequence',
    isKey: (id) => /^[0-9]{1,18}$/.test(id),
    filters: {
      target: equals('a.target', 'Only entries about this object.'),
      actor: equals('a.actor', 'Only entries of this key or account.'),
      action: equals('a.action', 'Only entries of this action, such as `key.created`.'),
      ...utcDayFilters('a.at'),
    },
  }),
  verify,
] as const
