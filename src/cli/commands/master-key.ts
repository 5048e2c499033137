// tundish master-key: replaces the key that everything secret in the database is sealed under.
import { randomBytes } from 'node:crypto'
import { basename } from 'node:path'
import type { Command } from 'commander'
import { UsageError } from '../../lib/errors.ts'
import { adoptNextMasterKeyIn, masterKeyFrom, openSeal, writeNextMasterKeyIn } from '../../lib/secrets.ts'
import { type Replaced, replaceMasterKey } from '../../operations/master-key/replace.ts'
import { action } from './command.ts'
import { commandLine } from './operations.ts'
import { readSecret } from './secrets.ts'

interface Options {
  to?: string
  othersAreStopped?: boolean
}

export function register(program: Command): void {
  const masterKey = program
    .command('master-key')
    .description('Replace the key that encrypts the secrets in the database')
  action(
    masterKey
      .command('replace')
      .description('Encrypt all secrets with a new master key; every other process must be stopped')
      .option('--to <file>', 'File with the new key, - for standard input; required if MASTER_KEY is set')
      .option('--others-are-stopped', 'Do not check for other processes, whose connections may be those of a pooler'),
    async (app, { to: file, othersAreStopped = false }: Options) => {
      const { masterKey, dataDir } = app.config
      const key = await newKey(file, masterKey !== undefined)
      const to = openSeal(key)
      if (to.fingerprint === app.seal.fingerprint) throw new UsageError('The new master key is the current one.')
      const keep = () => masterKey === undefined && writeNextMasterKeyIn(dataDir, key)
      const json = await replaceMasterKey(app, to, { actor: commandLine(), othersAreStopped, keep })
      const kept = masterKey === undefined ? adoptNextMasterKeyIn(dataDir) : undefined
      return { json, text: `${sentence(json)}\n${masterKey ? SET_KEY : keptIn(kept)} ${KEEP}` }
    },
  )
}

async function newKey(file: string | undefined, isSetting: boolean): Promise<Buffer> {
  if (file !== undefined) {
    const line = await readSecret(file)
    const key = line === undefined ? undefined : masterKeyFrom(line)
    if (key) return key
    throw new UsageError(
      '--to must hold 32 bytes in base64 and nothing else: make them with "openssl rand -base64 32".',
    )
  }
  if (!isSetting) return randomBytes(32)
  throw new UsageError(
    'MASTER_KEY is set: give the new key with --to FILE, made with "openssl rand -base64 32 > FILE".',
  )
}

const sentence = ({ secret_keys, merchant_accounts, alert_destinations }: Replaced) =>
  `The master key is replaced. Secret keys: ${secret_keys}, merchant accounts: ${merchant_accounts}, alert destinations: ${alert_destinations}.`

const KEEP = 'Keep the old key as long as you keep backups that were made with it.'
const SET_KEY = 'Set MASTER_KEY to the new key before you start a process.'
const keptIn = (file: string | undefined) =>
  `The new key is in master.key${file ? `, the old one in ${basename(file)}` : ''}.`
