// Checksums of all artefacts, and their signature with a key that is not in the repository.
import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const SUMS = 'SHA256SUMS'
const SIGNATURE = `${SUMS}.sig`
const PUBLIC_KEY = 'tundish-release.pub'

/** Writes SHA256SUMS, and its Ed25519 signature if there is a key. `sha256sum -c` and `openssl pkeyutl` verify them. */
export function writeSums(out: string, key: KeyObject | undefined): void {
  const names = readdirSync(out, { withFileTypes: true })
    .filter((entry) => entry.isFile() && ![SUMS, SIGNATURE, PUBLIC_KEY].includes(entry.name))
    .map(({ name }) => name)
    .sort()
  const lines = names.map(
    (name) =>
      `${createHash('sha256')
        .update(readFileSync(join(out, name)))
        .digest('hex')}  ${name}\n`,
  )
  const text = lines.join('')
  writeFileSync(join(out, SUMS), text)
  if (!key) return
  const signature = sign(null, Buffer.from(text), key)
  const publicKey = createPublicKey(key)
  if (!verify(null, Buffer.from(text), publicKey, signature)) throw new Error('The signature cannot be verified.')
  writeFileSync(join(out, SIGNATURE), signature)
  writeFileSync(join(out, PUBLIC_KEY), publicKey.export({ type: 'spki', format: 'pem' }))
}

/** The key of `RELEASE_KEY_FILE`: an Ed25519 private key in PEM, made by "openssl genpkey -algorithm ed25519". */
export function readKey(file: string | undefined): KeyObject | undefined {
  if (!file) return undefined
  const key = createPrivateKey(readFileSync(file))
  if (key.asymmetricKeyType !== 'ed25519')
    throw new Error(`${file} must have an Ed25519 key, it has ${key.asymmetricKeyType}.`)
  return key
}
