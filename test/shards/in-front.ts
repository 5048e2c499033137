// HAProxy in front of the servers of tests, loaded only where "npm run test:deep shards -- suite" asks for it.
export const inFront = process.env['TUNDISH_TEST_FRONT'] ? await import('./front.ts') : undefined
