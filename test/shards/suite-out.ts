// The tests that do not pass through HAProxy, each with its reason.

/** Whole files. */
export const FILES_OUT: Readonly<Record<string, string>> = {
  'test/operator/admin/all-shards.test.ts': 'It sends what HAProxy adds to requests that have no shard.',
  'test/operator/admin/hosts.test.ts':
    'It reads the metrics, and sets host names for one shard where HAProxy leads to any.',
  'test/operator/admin/search.test.ts': 'It searches all organizations, which is refused in front of all shards.',
}

const ALL_SHARDS = 'It searches, or lists charges of all organizations, which is refused in front of all shards.'

/** By file and name. */
export const OUT: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'test/operator/admin/orders.test.ts': {
    'find a person, see their charge and its timeline, refund it, send an event again': ALL_SHARDS,
    'a charge with an unknown outcome is listed as stuck, with the calls that were made': ALL_SHARDS,
    'a refund with an unknown outcome is listed as stuck, until it is known': ALL_SHARDS,
  },
  'test/payments/billing/pending-refunds.test.ts': {
    'a pending refund is counted as pending, not as one that is in progress for too long':
      'It reads metrics, and the refunds in progress of all organizations, which is refused in front of all shards.',
  },
  'test/data/public/responses.test.ts': {
    'even if the request was not HTTP': 'HAProxy refuses it itself, with its own 400, without X-Request-Id.',
  },
  'test/data/public/bodies.test.ts': {
    '413 above 1 MiB in chunks, without Content-Length':
      'HAProxy keeps the connection open after the response, and the test waits for its end.',
  },
  'test/data/public/outage.test.ts': {
    '503 with Retry-After for every kind of call, and not ready but alive':
      'Paths of no shard, as those of the health checks, go to another shard that is ready.',
  },
  'test/data/public/queries.test.ts': {
    'text outside ASCII is percent-encoded UTF-8; raw it is 400':
      'HAProxy refuses a raw path outside ASCII itself, with its own 400.',
  },
}
