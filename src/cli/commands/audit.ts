// tundish audit: lists the audit log and verifies that it is complete and unchanged.
import type { Command } from 'commander'
import { auditHeadsPath } from '../../core/audit/audit.ts'
import { verifyAudit } from '../../core/audit/verify.ts'
import { action } from './command.ts'
import { addOperations } from './operations.ts'

export async function register(program: Command): Promise<void> {
  const audit = program.command('audit').description('Show and verify the log of the actions of operators')
  await addOperations(audit, ['audit verify'])
  action(
    audit.command('verify').description('Check that no entry was changed, removed or inserted'),
    async ({ db, seal, config }) => {
      const verdict = await verifyAudit(db, seal, auditHeadsPath(config))
      const isIntact = verdict.wrong.length === 0
      return {
        json: verdict,
        text: isIntact ? `All ${verdict.entries} entries are intact.` : verdict.wrong.join('\n'),
        exitCode: isIntact ? 0 : 1,
      }
    },
  )
}
