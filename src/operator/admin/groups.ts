// All modules with operations, in the order of the API's description, with the first words of their commands.
import type { Operation } from './operation.ts'

type Module = readonly [words: readonly string[], load: () => Promise<readonly Operation[]>]

/** The API loads all modules (`operations.ts`), a command only those of its first word: this halves its start-up time. */
export const MODULES = [
  [['search'], async () => (await import('./search.ts')).searching],
  [['profile'], async () => (await import('./people.ts')).people],
  [['profile'], async () => (await import('./erasures.ts')).erasures],
  [['subscription'], async () => (await import('./subscriptions.ts')).subscriptions],
  [['order'], async () => (await import('./orders.ts')).orders],
  [['refund'], async () => (await import('./refunds.ts')).refunds],
  [['reconcile'], async () => (await import('./lost-movements.ts')).lostMovements],
  [['report'], async () => (await import('./finance.ts')).finance],
  [['finance'], async () => (await import('./tie-out.ts')).tieOuts],
  [['finance'], async () => (await import('./close-month.ts')).closings],
  [['finance'], async () => (await import('./payouts.ts')).payouts],
  [['finance'], async () => (await import('./balance-entries.ts')).balanceEntries],
  [['finance'], async () => (await import('./payout-match.ts')).payoutMatches],
  [['profile'], async () => (await import('./profiles.ts')).profiles],
  [['profile'], async () => (await import('./merges.ts')).merges],
  [['refund'], async () => (await import('./money-back.ts')).moneyBack],
  [['webhook'], async () => (await import('./webhooks.ts')).webhooks],
  [['rates'], async () => (await import('./exchange-rates.ts')).exchangeRates],
  [['alert'], async () => (await import('./alert-rules.ts')).alertRules],
  [['alert'], async () => (await import('./alert-settings.ts')).alertSettings],
  [['alert'], async () => (await import('./alert-destinations.ts')).alertDestinations],
  [['alert'], async () => (await import('./alert-messages.ts')).alertMessages],
  [['event', 'delivery'], async () => (await import('./events.ts')).events],
  [['figures'], async () => (await import('./figures.ts')).figures],
  [['figures'], async () => (await import('./acquisition.ts')).acquisitions],
  [['figures'], async () => (await import('./churn.ts')).churnOperations],
  [['figures'], async () => (await import('./answers.ts')).answerOperations],
  [['figures'], async () => (await import('./hours.ts')).hourOperations],
  [['figures'], async () => (await import('./spend.ts')).spendOperations],
  [['figures'], async () => (await import('./experiments.ts')).experimentResults],
  [['project', 'webhook'], async () => (await import('./state.ts')).projectState],
  [['project'], async () => (await import('./setup.ts')).projectSetup],
  [['funnel'], async () => (await import('./screens.ts')).funnelScreens],
  [['session', 'payment'], async () => (await import('./behind-figures.ts')).behindFigures],
  [['project'], async () => (await import('./sync-readers.ts')).syncReaders],
  [['project'], async () => (await import('./record-writers.ts')).recordWriters],
  [['project'], async () => (await import('./reporting.ts')).reporting],
  [['project'], async () => (await import('./write-payments.ts')).writePayments],
  [['keys', 'operator'], async () => (await import('./keys.ts')).keys],
  [['keys'], async () => (await import('./restored-keys.ts')).restoredKeys],
  [['org', 'project'], async () => (await import('./tenants.ts')).tenants],
  [['credits'], async () => (await import('./credits.ts')).credits],
  [['merchant-account'], async () => (await import('./merchant-accounts.ts')).merchantAccounts],
  [['merchant-account'], async () => (await import('./connections.ts')).connections],
  [['stripe-import'], async () => (await import('./stripe-imports.ts')).stripeImports],
  [['org', 'project'], async () => (await import('./rate-limits.ts')).rateLimits],
  [['audit'], async () => (await import('./audit-log.ts')).auditLog],
] as const satisfies readonly Module[]

/** The operations whose command begins with this word. */
export async function operationsOf(group: string): Promise<Operation[]> {
  const modules: readonly Module[] = MODULES
  const lists = await Promise.all(modules.filter(([words]) => words.includes(group)).map(([, load]) => load()))
  return lists.flat().filter(({ command }) => command.split(' ')[0] === group)
}
