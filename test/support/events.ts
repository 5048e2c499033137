// An app on its own database with a project, for tests of events.
import { randomUUID } from 'node:crypto'
import { type App, openApp } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import { createEndpoint } from '../../src/core/events/endpoints.ts'
import { type Event, write } from '../../src/core/events/outbox.ts'
import { createOrganization, createProject } from '../../src/core/tenants/tenants.ts'
import { freshSettings } from './server.ts'

export const ORGANIZATION = 'acme'
export const PROJECT = 'shop'

/** Opens the app and its project; `close` removes both. */
export async function openEvents(env: Record<string, string> = {}) {
  const { settings, dataDir, remove } = await freshSettings({
    LOG_LEVEL: 'error',
    WEBHOOK_ALLOW_PRIVATE: 'true',
    ...env,
  })
  const apps: App[] = []
  /** Another program on the same database. */
  async function another(more: NodeJS.ProcessEnv = {}) {
    const app = await openApp(readConfig({ ...settings, ...more }))
    apps.push(app)
    return app
  }
  const app = await another()
  await createOrganization(app.db, app.seal, { id: ORGANIZATION })
  const { secret_key: secretKey } = await createProject(app.db, app.seal, { id: PROJECT, organization: ORGANIZATION })

  return {
    app,
    settings,
    dataDir,
    secretKey,
    another,
    endpoint: (url: string, kinds: string[] = [], project = PROJECT) =>
      app.db.tx((query) => createEndpoint(query, project, { url, kinds, enabled: true }, { allowPrivate: true })),
    /** Writes an event and returns its id. */
    async event(more: { [K in keyof Event]?: Event[K] } = {}, project = PROJECT) {
      const event = {
        type: 'charge.succeeded',
        object_id: randomUUID(),
        profile_id: null,
        data: { a: 1 },
        ...more,
      } as Event
      await app.db.tx((query) => write(query, project, [event]))
      const [row] = await app.db.query(
        'select id from events where project_id = $1 and object_id = $2 order by sequence desc limit 1',
        [project, event.object_id],
      )
      return row!.id!
    },
    async close() {
      for (const one of apps) await one.close()
      await remove()
    },
  }
}
