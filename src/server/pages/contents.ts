// The guides in the order in which they are listed, in groups, each with what a reader finds in it.

export interface Entry {
  /** The path after `/docs/guides/`. */
  name: string
  about: string
}

export interface Group {
  title: string
  entries: readonly Entry[]
}

const entry = (name: string, about: string): Entry => ({ name, about })

export const CONTENTS: readonly Group[] = [
  {
    title: 'Start, in this order',
    entries: [
      entry('readme', 'What Tundish is, the first start, and the first calls.'),
      entry(
        'connect',
        'Connect your funnel: which key, which id, how many calls, and what to put into Stripe’s metadata.',
      ),
      entry('data-api', 'Write visits and people, read lists, and sync without missing a change.'),
      entry('charging', 'Charge: what to do on each response, and why a time-out is not a failure.'),
      entry('dashboard', 'Look: revenue, funnels, people and charges in a browser.'),
      entry('operating', 'Go live: from an empty machine to a service with proxy, backups, upgrades, keys.'),
    ],
  },
  {
    title: 'Integrate',
    entries: [
      entry('import', 'Every kind of record, field by field, and how to load a Stripe account.'),
      entry('moving-in', 'From another service with this API: keys, data, cards, the day of the switch.'),
      entry('stripe', 'From an empty Stripe account to live charges.'),
      entry('primer', 'From an empty Primer account to live charges.'),
      entry('webhooks', 'The events, their bodies, and how to verify a delivery.'),
      entry('credits', 'Tokens, minutes and other units: sell, spend, hold and expire them.'),
      entry('sync', 'A copy in files, SQLite, PostgreSQL or DuckDB; the client package; a dlt source.'),
      entry('errors', 'Every error code with its status and its meaning.'),
    ],
  },
  {
    title: 'Run the business',
    entries: [
      entry('figures', 'Metrics by day with their definitions.'),
      entry('alerts', 'Messages when a figure is out of line, and a digest every morning.'),
      entry('finance', 'A month’s sums by currency and payment provider, for bookkeeping.'),
      entry('erasure', 'Right-to-erasure requests, also after a restored backup.'),
      entry('operators', 'The operator’s API: find a person, refund a charge, rotate a key.'),
    ],
  },
  {
    title: 'Operate',
    entries: [
      entry('production', 'Limits, what to watch, and what to do for each alert.'),
      entry('backup', 'What to keep, and how to restore it.'),
      entry('upgrading', 'What a version promises, how to upgrade, and how to go back.'),
      entry('security', 'What Tundish promises, and what an attacker can do with a key, a backup or a machine.'),
      entry('roles', 'Operators: their roles, their reach, and the limit of refunds.'),
      entry('configuration', 'Every setting with its default.'),
      entry('commands', 'Every command with its options.'),
      entry('metrics', 'Every metric of /metrics.'),
      entry('containers', 'Images, a compose file, and a Helm chart for Kubernetes.'),
      entry('managed-postgresql', 'What a hosted PostgreSQL has to offer, without a superuser.'),
    ],
  },
  {
    title: 'For few',
    entries: [
      entry('growing', 'From one process to all cores, replicas, failover and shards.'),
      entry('high-availability', 'Three nodes that take over for each other, and what a failover loses.'),
      entry('providers', 'The rules for an adapter of a payment provider, and how to write one.'),
    ],
  },
  {
    title: 'Contribute',
    entries: [
      entry('contributing', 'Where things are, how to add a field, a list, an event or a provider.'),
      entry('dependencies', 'The libraries with their reasons.'),
      entry('releasing', 'How the artefacts of a version are made, checked and published.'),
      entry('changelog', 'What changed, and what to do after an update.'),
    ],
  },
]
