// Two shards as the command line sees them: a folder of settings, with a database of the test's server for each.
import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before } from 'node:test'
import { type App, openApp } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import { createOrganization, createProject } from '../../src/core/tenants/tenants.ts'
import { openLog } from '../../src/lib/log.ts'
import { temporaryFolder } from '../support/folder.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'

export type ShardName = 'north' | 'south'

/** For the tests of a file. `more` is in the settings of each shard; `prepare` is run before the first test. */
export function setUpShards(more: Record<string, string> = {}, prepare = async () => {}) {
  const masterKey = randomBytes(32).toString('base64')
  const folder = temporaryFolder()
  const settings = join(folder, 'settings')
  const databases = {} as Record<ShardName, FreshDatabase>
  const envOf = (name: ShardName): Record<string, string> => ({
    DATABASE_URL: databases[name].url,
    MASTER_KEY: masterKey,
    DATA_DIR: join(folder, name),
    ...more,
  })

  function write(name: string, env: Record<string, string>): void {
    const lines = Object.entries(env).map(([key, value]) => `${key}=${value}\n`)
    writeFileSync(join(settings, `${name}.env`), lines.join(''))
  }

  async function withApp<T>(name: ShardName, work: (app: App) => Promise<T>): Promise<T> {
    const app = await openApp(readConfig(envOf(name)), { log: openLog('silent') })
    return work(app).finally(() => app.close())
  }

  before(async () => {
    mkdirSync(settings)
    for (const name of ['north', 'south'] as const) {
      databases[name] = await freshDatabase()
      write(name, envOf(name))
    }
    await prepare()
  })
  after(async () => {
    for (const database of Object.values(databases)) await database.drop()
  })
  return {
    folder,
    settings,
    masterKey,
    databases,
    envOf,
    write,
    withApp,
    /** Creates an organization with a project `ID-SHARD`, and returns their keys. */
    create: (shard: ShardName, id: string): Promise<string[]> =>
      withApp(shard, async (app) => {
        const organization = await createOrganization(app.db, app.seal, { id })
        const project = await createProject(app.db, app.seal, { id: `${id}-${shard}`, organization: id })
        return [organization.secret_key, project.secret_key]
      }),
  }
}
