// The master key, and the encryption of small texts with it.
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto'
import { existsSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { UsageError } from './errors.ts'
import { makeFolder } from './files.ts'
import { writeNew } from './new-file.ts'

const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Seals and opens small texts with AES-256-GCM; `context` binds a sealed text to its place. */
export interface Seal {
  seal(text: string, context: string): Buffer
  /** Throws when the text was sealed under another key or for another context. */
  open(sealed: Buffer, context: string): string
  /** A fingerprint that does not reveal the master key. */
  fingerprint: string
  /** A key for another purpose, derived from the master key. */
  derive(purpose: string): Buffer
}

export function openSeal(masterKey: Buffer): Seal {
  const derive = (purpose: string) => Buffer.from(hkdfSync('sha256', masterKey, '', `tundish ${purpose}`, 32))
  const key = derive('sealed keys')
  return {
    derive,
    fingerprint: createHmac('sha256', masterKey).update('tundish master key fingerprint').digest('hex'),
    seal(text, context) {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context))
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return Buffer.concat([nonce, cipher.getAuthTag(), sealed])
    },
    open(sealed, context) {
      const nonce = sealed.subarray(0, NONCE_BYTES)
      const tag = sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES)
      const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
      decipher.setAAD(Buffer.from(context)).setAuthTag(tag)
      return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]).toString(
        'utf8',
      )
    },
  }
}

/** Compares two secrets in constant time. */
export function equalSecrets(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other)
}

/** The file of an embedded database's master key. */
export const masterKeyPath = (dataDir: string) => join(dataDir, 'master.key')

/** The master key in the data folder; undefined if there is none. */
export function masterKeyIn(dataDir: string): Buffer | undefined {
  return keyIn(masterKeyPath(dataDir))
}

/** The master key as settings and files have it, 32 bytes in base64; undefined for any other text. */
export function masterKeyFrom(text: string): Buffer | undefined {
  const given = text.trim().replace(/=+$/, '')
  const key = Buffer.from(given, 'base64')
  return key.length === 32 && key.toString('base64').replace(/=+$/, '') === given ? key : undefined
}

function keyIn(path: string): Buffer | undefined {
  if (!existsSync(path)) return undefined
  // A container makes a folder where a file that it mounts is missing.
  if (statSync(path).isDirectory()) throw new UsageError(`${path} is a folder: restore the file from your backup.`)
  const key = masterKeyFrom(readFileSync(path, 'utf8'))
  if (!key) throw new UsageError(`${path} does not hold 32 bytes in base64: restore it from your backup.`)
  return key
}

/** The same; if there is none it is created with mode 0600. For a first start only: a lost key must never be replaced. */
export function makeMasterKeyIn(dataDir: string): Buffer {
  makeFolder(dataDir)
  // Of two concurrent first starts one creates the key and the other reads it.
  writeNew(masterKeyPath(dataDir), randomBytes(32).toString('base64'))
  return masterKeyIn(dataDir)!
}

/** The file of a key that is to replace the master key. */
const nextMasterKeyPath = (dataDir: string) => `${masterKeyPath(dataDir)}.next`

/**
 * Stores a key next to the master key, before the database is sealed under it: whenever the program is killed, the key that
 * opens the database is in one of the two files.
 */
export function writeNextMasterKeyIn(dataDir: string, key: Buffer): void {
  // Left from a replacement that was not committed.
  rmSync(nextMasterKeyPath(dataDir), { force: true })
  writeNew(nextMasterKeyPath(dataDir), key.toString('base64'))
}

/** The key of `writeNextMasterKeyIn`, if there is one. */
export const nextMasterKeyIn = (dataDir: string): Buffer | undefined => keyIn(nextMasterKeyPath(dataDir))

/**
 * Makes the next key the master key, and keeps the old one in the returned file. Two programs may do it at the same time.
 */
export function adoptNextMasterKeyIn(dataDir: string): string | undefined {
  const next = nextMasterKeyIn(dataDir)
  if (!next) return undefined
  const path = masterKeyPath(dataDir)
  const old = keyIn(path)
  const kept = old && !equalSecrets(old, next) ? keepOldMasterKey(path, old.toString('base64')) : undefined
  try {
    renameSync(nextMasterKeyPath(dataDir), path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  return kept
}

/** Backups may need any earlier key, so no file of one is replaced: `master.key.old`, `master.key.old-2`, … */
function keepOldMasterKey(path: string, old: string): string {
  for (let number = 1; ; number++) {
    const file = number === 1 ? `${path}.old` : `${path}.old-${number}`
    writeNew(file, old)
    if (readFileSync(file, 'utf8').trim() === old) return file
  }
}
