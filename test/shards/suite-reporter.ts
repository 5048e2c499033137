// Reports each test of a run as a line of JSON: its file, its names from the outermost on, and how it ended.
import { relative } from 'node:path'
import type { TestEvent } from 'node:test/reporters'

export interface Reported {
  file: string
  name: string
  outcome: 'passed' | 'failed' | 'skipped'
  why?: string
}

export default async function* report(events: AsyncIterable<TestEvent>): AsyncIterable<string> {
  for await (const { type, data } of events) {
    if (type !== 'test:pass' && type !== 'test:fail') continue
    const { name, file, skip, details } = data
    if (details.type === 'suite' || file === undefined) continue
    const about = { file: relative(process.cwd(), file), name }
    if (skip !== undefined) yield lineOf({ ...about, outcome: 'skipped' })
    else if (type === 'test:pass') yield lineOf({ ...about, outcome: 'passed' })
    else yield lineOf({ ...about, outcome: 'failed', why: whyOf((details as { error: Error }).error) })
  }
}

const lineOf = (line: Reported) => `${JSON.stringify(line)}\n`

/** Node's error has the test's own as its cause. */
const whyOf = (error: Error) => (error.cause as Error | undefined)?.message ?? error.message
