// tundish keys: replaces a secret key, at once or with an overlap.
import type { Command } from 'commander'
import { UsageError } from '../lib/errors.ts'
import { webhookSecret } from '../lib/secrets.ts'
import { regenerateKey } from '../tenants.ts'
import { action } from './command.ts'

const UNIT_SECONDS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400 }
const LONGEST_OVERLAP_SECONDS = 365 * 86_400

export function register(program: Command): void {
  const keys = program.command('keys').description('secret keys')
  action(
    keys
      .command('regenerate')
      .description('make a new key and end the old ones')
      .option('--org <id>', 'the organization whose key it is')
      .option('--project <id>', 'the project whose key it is')
      .option('--overlap <time>', 'how long the old keys live on: 24h, 90m, 7d'),
    async ({ db, seal }, { org, project, overlap }: { org?: string; project?: string; overlap?: string }) => {
      if ((org === undefined) === (project === undefined)) throw new UsageError('Give either --org or --project.')
      const made = await regenerateKey(
        db,
        seal,
        { organization: org, project },
        overlap === undefined ? 0 : readSpan(overlap),
      )
      const until = made.previous_expires_at
      const old = until ? `The old keys live until ${until}.` : 'The old keys are dead.'
      return {
        json: project === undefined ? made : { ...made, webhook_secret: webhookSecret(made.secret_key) },
        text: `The new secret key, shown only now:\n${made.secret_key}\n${old}`,
      }
    },
  )
}

function readSpan(text: string): number {
  const [, digits, unit] = /^([1-9][0-9]{0,6})([smhd])$/.exec(text) ?? []
  const seconds = Number(digits) * (UNIT_SECONDS[unit ?? ''] ?? Number.NaN)
  if (seconds <= LONGEST_OVERLAP_SECONDS) return seconds
  throw new UsageError(`--overlap must be a time of at most a year such as 24h, 90m or 7d, not "${text}".`)
}
