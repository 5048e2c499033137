// The folder of an embedded database: DATA_DIR/postgres, or a folder elsewhere that DATA_DIR/postgres then links to.
import { createHash, randomBytes } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmdirSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { UsageError } from '../errors.ts'
import { makeFolder } from '../files.ts'
import { writeNew } from '../new-file.ts'
import { type Account, canEnter, isRoot, newOwner } from './account.ts'

export interface Home {
  /** DATA_DIR, all symlinks resolved. Owned by this process's user, like the log and the password in it. */
  dataDir: string
  /** Owned by this process's user; its content belongs to the server's account. */
  folder: string
  /** PostgreSQL's own data directory; it may not exist yet. */
  cluster: string
  logFile: string
  password: string
  notice?: string
  /** The folder whose `bin` has PostgreSQL's programs; by default those of this installation. */
  programs?: string
  /** Set by the upgrade of the database, which alone may open it then. */
  isUpgrading?: true
}

export const PORT = 5432

const ELSEWHERE = '/var/lib/tundish'

// The kernel limits a socket's path to 107 bytes (macOS: 103).
const LONGEST_SOCKET_PATH = 100

export async function openHome(givenDataDir: string): Promise<Home> {
  makeDataDir(givenDataDir)
  const dataDir = realpathSync(givenDataDir)
  const folder = (await existingFolder(dataDir)) ?? (await newFolder(dataDir))
  const cluster = join(folder, 'data')
  const home = {
    dataDir,
    folder,
    cluster,
    logFile: join(dataDir, 'postgres.log'),
    password: readPassword(dataDir, existsSync(cluster)),
  }
  if (folder.startsWith(dataDir)) return home
  const notice = `PostgreSQL does not run as root, and the account it runs as cannot enter ${dataDir}: the database is in ${folder}.`
  return { ...home, notice }
}

/**
 * The folder of the server's socket, created if needed: in the home, or, if that path is too long for a socket or has a comma,
 * which separates the hosts of an address, a private one under /tmp (a fixed place: TMPDIR may differ from one program to the next).
 */
export function socketFolder({ folder, cluster }: Home, account: Account | undefined): string {
  const uid = account?.uid ?? process.getuid?.() ?? 0
  const inside = join(folder, 'run')
  const fits = !inside.includes(',') && Buffer.byteLength(join(inside, `.s.PGSQL.${PORT}`)) <= LONGEST_SOCKET_PATH
  const chosen = fits ? inside : `/tmp/tundish-${createHash('sha256').update(cluster).digest('hex').slice(0, 16)}`
  if (mkdirSync(chosen, { recursive: true, mode: 0o700 }) && account) chownSync(chosen, account.uid, account.gid)
  const made = lstatSync(chosen)
  if (made.isDirectory() && made.uid === uid && (made.mode & 0o077) === 0) return chosen
  throw new UsageError(
    `${chosen} must be a folder that only PostgreSQL's account can use, for its socket, but is not: remove it.`,
  )
}

/** Creates missing parent folders as `mkdir -p` does; DATA_DIR itself is private, because it holds secrets. */
function makeDataDir(dataDir: string): void {
  if (makeFolder(dataDir, 0o700)) openToServer(dataDir)
}

async function existingFolder(dataDir: string): Promise<string | undefined> {
  const path = join(dataDir, 'postgres')
  if (existsSync(path)) return realpathSync(path)
  if (!lstatSync(path, { throwIfNoEntry: false })) return undefined
  throw new UsageError(
    `${path} links to the folder of the database, which is missing: restore that folder, or remove the link and postgres.password to start with an empty database.`,
  )
}

async function newFolder(dataDir: string): Promise<string> {
  const inside = join(dataDir, 'postgres')
  const account = await newOwner(dataDir)
  if (account && !(await canEnter(account, dataDir))) return newFolderElsewhere(dataDir, inside)
  makeFolder(inside, 0o700)
  openToServer(inside)
  return inside
}

/** The name is random: a DATA_DIR that was removed and created again must not find its former database. */
function newFolderElsewhere(dataDir: string, link: string): string {
  mkdirSync(ELSEWHERE, { recursive: true, mode: 0o711 })
  const folder = mkdtempSync(join(ELSEWHERE, `${basename(dataDir).replace(/[^A-Za-z0-9]/g, '') || 'data'}-`))
  openToServer(folder)
  try {
    symlinkSync(folder, link)
  } catch (error) {
    rmdirSync(folder)
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  return realpathSync(link)
}

/** As root: the server's account must be able to traverse these folders, but not to list them. */
function openToServer(folder: string): void {
  if (isRoot()) chmodSync(folder, 0o711)
}

function readPassword(dataDir: string, clusterExists: boolean): string {
  const file = join(dataDir, 'postgres.password')
  if (!existsSync(file)) {
    if (clusterExists)
      throw new UsageError(`${file} is missing, and the database accepts no other password: restore it from a backup.`)
    writeNew(file, randomBytes(24).toString('base64url'))
  }
  const password = statSync(file).isFile() ? readFileSync(file, 'utf8').trim() : ''
  if (!password) throw new UsageError(`${file} holds no password: restore it from a backup.`)
  return password
}
