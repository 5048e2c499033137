// tundish search: finds people, subscriptions and orders across all projects.
import type { Command } from 'commander'
import { beOperation } from './operations.ts'

export function register(program: Command): void {
  beOperation(program.command('search'))
}
