// The files that are not in the database: whether they can be written, and by whom.
import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Config } from '../../config.ts'
import { auditHeadsPath } from '../../core/audit/audit.ts'
import { masterKeyPath } from '../../lib/secrets.ts'
import { type Finding, failed } from './finding.ts'

/** Erasures and operators' changes are written to files before the database commits, so both fail without these files. */
export async function checkFiles(config: Config): Promise<Finding[]> {
  return (await unwritableFiles(config)).map(({ message, fix }) => failed('files', message, fix))
}

/** What is wrong with the files that are written before the database commits, and how to fix it. */
export async function unwritableFiles(config: Config): Promise<{ message: string; fix: string }[]> {
  const problems: { message: string; fix: string }[] = []
  for (const path of [config.erasureLedger, auditHeadsPath(config)]) {
    const code = await whyNotWritable(path)
    if (code)
      problems.push({ message: `${path} cannot be written (${code}).`, fix: code === 'EROFS' ? `${FIX} ${UNIT}` : FIX })
  }
  return problems
}

const FIX =
  'Without it, erasures or operators’ changes fail: set DATA_DIR or ERASURE_LEDGER to a persistent, writable disk.'
// Every other folder is read-only to a service with ProtectSystem=strict.
const UNIT = 'Or name its folder in ReadWritePaths= of the systemd unit.'

/** The error code if the file cannot be written. Missing folders are no error: they are created when needed. */
async function whyNotWritable(path: string, isFile = true): Promise<string | undefined> {
  try {
    await access(path, constants.W_OK)
    return isFile && (await stat(path)).isDirectory() ? 'EISDIR' : undefined
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return code === 'ENOENT' && dirname(path) !== path ? whyNotWritable(dirname(path), false) : code
  }
}

/** A file created by root cannot be used by the service, which runs as the owner of the folder. */
export async function checkOwners({ databaseUrl, masterKey, dataDir, ...config }: Config): Promise<Finding[]> {
  const paths = [config.erasureLedger, auditHeadsPath({ dataDir })]
  if (!masterKey) paths.push(masterKeyPath(dataDir))
  if (!databaseUrl) paths.push(join(dataDir, 'postgres.password'))
  const findings: Finding[] = []
  for (const path of paths) {
    const [file, folder] = await Promise.all([path, dirname(path)].map((one) => stat(one).catch(() => undefined)))
    // A folder of root, such as a mounted volume, does not show which user the service runs as.
    if (!file || !folder || folder.uid === 0 || file.uid === folder.uid) continue
    const message = `${path} belongs to user ${file.uid} and its folder to user ${folder.uid}, who may not be able to use it.`
    findings.push(failed('files', message, `Run, as root: chown ${folder.uid}:${folder.gid} ${path}`))
  }
  return findings
}
