// The master key, and the encryption of small texts with it.
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
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

/** The master key in the data folder; undefined when there is none. */
export function masterKeyIn(dataDir: string): Buffer | undefined {
  const path = masterKeyPath(dataDir)
  if (!existsSync(path)) return undefined
  const key = Buffer.from(readFileSync(path, 'utf8').trim(), 'base64')
  if (key.length !== 32) throw new UsageError(`${path} does not hold 32 bytes in base64: restore it from your backup.`)
  return key
}

/** The same; if there is none it is created with mode 0600. For a first start only: a lost key must never be replaced. */
export function makeMasterKeyIn(dataDir: string): Buffer {
  makeFolder(dataDir)
  // Of two concurrent first starts one creates the key and the other reads it.
  writeNew(masterKeyPath(dataDir), randomBytes(32).toString('base64'))
  return masterKeyIn(dataDir)!
}
