// tundish profile: the people of a project; `merge` shows what will happen and asks before it does it.
import type { Command } from 'commander'
import type { App } from '../../app.ts'
import { action } from './command.ts'
import { confirm } from './confirm.ts'
import { addOperations, runOperation } from './operations.ts'
import { describeResponse } from './text.ts'

export async function register(program: Command): Promise<void> {
  const profile = program.command('profile').description('Show, merge and erase people')
  await addOperations(profile, ['profile merge'])
  const merge = profile
    .command('merge <from> <into>')
    .description('Merge a profile into another of the same person')
    .requiredOption('--project <id>', 'The project')
    .option('--yes', 'Do not ask')
  action(merge, mergeOne)
}

async function mergeOne(app: App, from: string, into: string, { project, yes }: { project: string; yes?: boolean }) {
  const input = { params: { project_id: project, profile_id: from, into_id: into } }
  if (!yes) {
    const found = await runOperation('profile', 'previewMerge', app, input)
    const { sessions, subscriptions, transactions, customers } = found
    const what = `sessions ${sessions}, subscriptions ${subscriptions}, transactions ${transactions}, billing customers ${customers}`
    await confirm(
      `${from} moves into ${into}: ${what}.\n${from} loses its personal data, and its id stands for ${into}. This cannot be undone.`,
    )
  }
  const json = await runOperation('profile', 'mergeProfiles', app, input)
  return { json, text: describeResponse(json) }
}
