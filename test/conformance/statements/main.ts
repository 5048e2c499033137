// npm run test:deep statements -- [FILES]: runs the tests and prints the statements that could not be routed by tenant.
import { runAndJudge } from './run.ts'

const files = process.argv.slice(2)

const { statements, files: senders, breaches, needless, code } = await runAndJudge(files)
const all = files.length === 0
process.stdout.write(`${statements} statements of ${senders.size} files; the tests ended with ${code}.\n`)
for (const breach of breaches) process.stdout.write(`\n${breach}\n`)
// A run of some files does not use all exceptions.
if (all) for (const one of needless) process.stdout.write(`\nThis exception is not needed: ${one}\n`)
process.exitCode = code !== 0 || breaches.length > 0 || (all && needless.length > 0) ? 1 : 0
