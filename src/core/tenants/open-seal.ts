// Opens the seal of the secrets of tenants with the master key of this database.

import { UsageError } from '../../lib/errors.ts'
import type { Db } from '../../lib/pg/db.ts'
import {
  adoptNextMasterKeyIn,
  makeMasterKeyIn,
  masterKeyIn,
  nextMasterKeyIn,
  openSeal,
  type Seal,
} from '../../lib/secrets.ts'

/** Creates the key file only for a database that has never used a key. Any other key could not decrypt its secrets. */
export async function openSealOf(
  db: Db,
  { masterKey, dataDir }: { masterKey?: Buffer | undefined; dataDir: string },
): Promise<Seal> {
  let current = masterKey ?? masterKeyIn(dataDir)
  if (!current) {
    const known = await db.query(`select 1 from instance where name = 'master key'`)
    // Another process that also started for the first time may have created it in between.
    current = masterKeyIn(dataDir)
    if (!current && known.length > 0)
      throw new UsageError(`master.key is missing in ${dataDir}: restore it from your backup, or set MASTER_KEY.`)
  }
  const next = masterKey ? undefined : await finishReplacement(db, dataDir)
  const seal = next ?? openSeal(current ?? makeMasterKeyIn(dataDir))
  await checkMasterKey(db, seal)
  return seal
}

/** Finishes a replacement of the master key that was killed between its commit and the renaming of the key file. */
async function finishReplacement(db: Db, dataDir: string): Promise<Seal | undefined> {
  const key = nextMasterKeyIn(dataDir)
  if (!key) return undefined
  const next = openSeal(key)
  const [row] = await db.query(`select value from instance where name = 'master key'`)
  if (row?.value !== next.fingerprint) return undefined
  adoptNextMasterKeyIn(dataDir)
  return next
}

/** Throws if the master key is not the database's: no stored key could be decrypted, so the program must not start. */
async function checkMasterKey(db: Db, seal: Seal): Promise<void> {
  await db.query(`insert into instance (name, value) values ('master key', $1) on conflict (name) do nothing`, [
    seal.fingerprint,
  ])
  const [row] = await db.query(`select value from instance where name = 'master key'`)
  if (row!.value !== seal.fingerprint) {
    throw new UsageError(
      'MASTER_KEY (or master.key in the data folder) is not the one this database was set up with: start with the right one, or restore it from your backup.',
    )
  }
}
