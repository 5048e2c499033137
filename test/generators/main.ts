// Prints a table of client generators: their warnings, and whether the client compiles and reads.
// npm run test:deep generators [-- --document FILE --only NAME]; a generator whose tools are missing is skipped, with the reason.
import { copyFileSync } from 'node:fs'
import { isDeepStrictEqual, parseArgs } from 'node:util'
import { globalSetup, globalTeardown } from '../support/global-setup.ts'
import { generatorJava, generatorPython, oapiCodegen, openapiPythonClient } from './others.ts'
import { CommandFailed, EXPECTED, type Outcome, openTrial, type Trial } from './run.ts'
import { heyApi, openapiTypescript } from './typescript.ts'

const GENERATORS: Record<string, (trial: Trial) => Promise<Outcome>> = {
  'openapi-typescript': openapiTypescript,
  '@hey-api/openapi-ts': heyApi,
  'openapi-python-client': openapiPythonClient,
  'oapi-codegen': oapiCodegen,
  'openapi-generator, java': generatorJava,
  'openapi-generator, python': generatorPython,
}

// How a missing tool shows: no such program, no such Python module, no jar.
const MISSING = /ENOENT|No module named \S+|OPENAPI_GENERATOR_JAR is not set/

const { values } = parseArgs({ options: { document: { type: 'string' }, only: { type: 'string' } } })

await globalSetup()
const trial = await openTrial()
if (values.document) copyFileSync(values.document, trial.document)
try {
  console.log('| generator | version | warnings | compiles and reads |\n|---|---|---|---|')
  for (const [name, generate] of Object.entries(GENERATORS)) {
    if (values.only && !name.includes(values.only)) continue
    console.log(`| ${(await row(name, generate)).join(' | ')} |`)
  }
} finally {
  await trial.stop()
  await globalTeardown()
}

async function row(name: string, generate: (trial: Trial) => Promise<Outcome>): Promise<string[]> {
  try {
    const { version, warnings, read } = await generate(trial)
    for (const warning of warnings) console.error(`${name}: ${warning}`)
    const same = isDeepStrictEqual(read, EXPECTED)
    if (!same) process.exitCode = 1
    return [name, version, String(warnings.length), same ? 'yes' : `reads ${JSON.stringify(read)}`]
  } catch (error) {
    const missing = MISSING.exec((error as Error).message)
    if (missing) return [name, '', '', `skipped: ${missing[0]}`]
    console.error(`${name}: ${error instanceof CommandFailed ? error.message : (error as Error).stack}`)
    process.exitCode = 1
    return [name, '', '', 'no']
  }
}
