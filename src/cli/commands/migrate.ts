// tundish migrate: migrates the database, and prints the migrations.
import type { Command } from 'commander'
import { action } from './command.ts'

export function register(program: Command): void {
  action(program.command('migrate').description('Apply pending migrations of the database'), async ({ migrated }) => ({
    json: { applied: migrated },
    text: migrated.length > 0 ? `Applied migrations: ${migrated.join(', ')}.` : 'The database is up to date.',
  }))
}
