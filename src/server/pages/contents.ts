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
    title: 'Start',
    entries: [
      entry('readme', 'What Tundish is, the first start, and the first calls.'),
      entry('data-api', 'Lists, filters, cursors, and a sync that misses nothing.'),
      entry('charging', 'What to do on each response to a charge, and why a time-out is not a failure.'),
      entry('credits', 'Tokens, minutes and other units: sell, spend, hold and expire them.'),
      entry('import', 'Every kind of record, field by field, and how to load a Stripe account.'),
    ],
  },
  {
    title: 'Integrate',
    entries: [
      entry('moving-in', 'From another service with this API: keys, data, cards, the day of the switch.'),
      entry('webhooks', 'The events, their bodies, and how to verify a delivery.'),
      entry('sync', 'A copy in files, SQLite, PostgreSQL or DuckDB; the client package; a dlt source.'),
      entry('stripe', 'From an empty Stripe account to live charges.'),
      entry('providers', 'The rules for an adapter of a payment provider, and how to write one.'),
      entry('errors', 'Every error code with its status and its meaning.'),
    ],
  },
  {
    title: 'Run the business',
    entries: [
      entry('dashboard', 'Revenue, funnels, people and charges in a browser.'),
      entry('figures', 'Metrics by day with their definitions.'),
      entry('finance', 'A month’s sums by currency and payment provider, for bookkeeping.'),
      entry('erasure', 'Right-to-erasure requests, also after a restored backup.'),
    ],
  },
  {
    title: 'Operate',
    entries: [
      entry('operating', 'From an empty machine to a service: systemd, proxy, backups, upgrades, keys.'),
      entry('containers', 'Images, a compose file, and a Helm chart for Kubernetes.'),
      entry('upgrading', 'What a version promises, how to upgrade, and how to go back.'),
      entry('managed-postgresql', 'What a hosted PostgreSQL has to offer, without a superuser.'),
      entry('production', 'Limits, what to watch, and what to do for each alert.'),
      entry('operators', 'The operator’s API: find a person, refund a charge, rotate a key.'),
      entry('roles', 'Operators: their roles, their reach, and the limit of refunds.'),
      entry('configuration', 'Every setting with its default.'),
      entry('commands', 'Every command with its options.'),
      entry('metrics', 'Every metric of /metrics.'),
      entry('backup', 'What to keep, and how to restore it.'),
      entry('growing', 'From one process to all cores, replicas, failover and shards.'),
      entry('high-availability', 'Three nodes that take over for each other, and what a failover loses.'),
      entry('security', 'What Tundish promises, and what an attacker can do with a key, a backup or a machine.'),
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
