// Runs test files and records every statement that the program sends during the run, in all processes.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Judgement, judgeStatements } from './judge.ts'

const ROOT = join(import.meta.dirname, '../../..')
const COLLECT = join(import.meta.dirname, 'collect.mjs')

export async function runAndJudge(args: string[]): Promise<Judgement & { code: number }> {
  const folder = mkdtempSync(join(tmpdir(), 'tundish-statements-'))
  try {
    // Otherwise a run within a test would report to that test.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const child = spawn(join(ROOT, 'bin/test'), args, {
      cwd: ROOT,
      env: { ...env, STATEMENTS_FOLDER: folder, NODE_OPTIONS: `--import=${COLLECT}` },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    const [code] = (await once(child, 'exit')) as [number]
    return { ...(await judgeStatements(folder)), code }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
