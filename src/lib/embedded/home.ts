// Where an embedded database lives: DATA_DIR/postgres, or a folder elsewhere that DATA_DIR/postgres then points to.
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
  symlinkSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { UsageError } from '../errors.ts'
import { makeFolder } from '../files.ts'
import { writeNew } from '../new-file.ts'
import { type Account, canEnter, isRoot, newOwner } from './account.ts'

export interface Home {
  /** DATA_DIR, all symlinks resolved. Ours, like the log and the password in it. */
  dataDir: string
  /** Ours too; what is in it belongs to the server's account. */
  folder: string
  /** PostgreSQL's own data directory; it may not be there yet. */
  cluster: string
  logFile: string
  password: string
  notice?: string
}

export const PORT = 5432

const ELSEWHERE = '/var/lib/tundish'

// The kernel takes 107 bytes (macOS: 103) for a socket's path.
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
 * The folder of the server's socket, made if need be: in the home, or, when that path is too long for a socket,
 * a private one under /tmp (a fixed place: TMPDIR may differ from one program to the next).
 */
export function socketFolder({ folder, cluster }: Home, account: Account | undefined): string {
  const uid = account?.uid ?? process.getuid?.() ?? 0
  const inside = join(folder, 'run')
  const fits = Buffer.byteLength(join(inside, `.s.PGSQL.${PORT}`)) <= LONGEST_SOCKET_PATH
  const chosen = fits ? inside : `/tmp/tundish-${createHash('sha256').update(cluster).digest('hex').slice(0, 16)}`
  if (mkdirSync(chosen, { recursive: true, mode: 0o700 }) && account) chownSync(chosen, account.uid, account.gid)
  const made = lstatSync(chosen)
  if (made.isDirectory() && made.uid === uid && (made.mode & 0o077) === 0) return chosen
  throw new UsageError(
    `${chosen} has to be a folder of PostgreSQL's account alone, for its socket, and is not: remove it.`,
  )
}

/** Folders above it that are missing are made as `mkdir -p` makes them; DATA_DIR itself holds secrets. */
function makeDataDir(dataDir: string): void {
  if (makeFolder(dataDir, 0o700)) openToServer(dataDir)
}

async function existingFolder(dataDir: string): Promise<string | undefined> {
  const path = join(dataDir, 'postgres')
  if (existsSync(path)) return realpathSync(path)
  if (!lstatSync(path, { throwIfNoEntry: false })) return undefined
  throw new UsageError(
    `${path} points to the folder of the database, which is gone: restore that folder, or remove the link and postgres.password to begin with an empty database.`,
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

/** The name is random: a DATA_DIR that was removed and made anew must not find its former database under a new password. */
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

/** As root, the server's account has to pass through our folders, but not to look into them. */
function openToServer(folder: string): void {
  if (isRoot()) chmodSync(folder, 0o711)
}

function readPassword(dataDir: string, clusterExists: boolean): string {
  const file = join(dataDir, 'postgres.password')
  if (!existsSync(file)) {
    if (clusterExists)
      throw new UsageError(`${file} is missing, and the database opens to no other: restore it from a backup.`)
    writeNew(file, randomBytes(24).toString('base64url'))
  }
  return readFileSync(file, 'utf8').trim()
}
