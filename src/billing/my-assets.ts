// What a customer owns: the consumables that charges granted. Subscriptions and one-off purchases are not made here.
import type { FastifyInstance } from 'fastify'
import { sendJson } from '../lib/http/send-json.ts'
import type { Db } from '../lib/pg/db.ts'
import type { Statement } from '../lib/pg/types.ts'
import { Type } from '../lib/shape/schema.ts'
import { externalId } from './body.ts'
import { consumable } from './effects/consumable.ts'
import { describe, lineOf, ok, type Post } from './route.ts'

const myAssetsIn = Type.Object({ external_id: externalId }, { title: 'MyAssetsIn', additionalProperties: false })

const myAssetsOut = Type.Object(
  {
    subscriptions: Type.Array(Type.Object({}), { description: 'Always empty: Tundish sells none itself.' }),
    oneoffs: Type.Array(Type.Object({}), { description: 'Always empty: a custom charge is no one-off purchase.' }),
    consumables: Type.Array(consumable.schema, { description: 'What charges granted, newest first.' }),
  },
  { title: 'MyAssets' },
)

export function myAssets(app: FastifyInstance, { db }: { db: Db }): void {
  const schema = {
    ...describe({
      operationId: 'listMyAssets',
      summary: 'List what a customer owns',
      description: 'A customer who is not known owns nothing: all groups are empty.',
    }),
    body: myAssetsIn,
    ...ok('What the customer owns.', myAssetsOut),
  }
  app.post<Post<{ external_id: string }>>('/my_assets', { schema }, async ({ body, organizationId }, reply) => {
    const rows = await db.fair(lineOf(organizationId), WEIGHT, () => db.read(LIST, [organizationId, body.external_id]))
    return sendJson(reply, consumable.writeList(rows, '{"subscriptions":[],"oneoffs":[],"consumables":[', ']}'))
  })
}

// In turns: a short read, for few customers have bought more than a page.
const WEIGHT = 1

const LIST: Statement = {
  name: 'list consumables',
  text: `select ${consumable.columns} from consumables c where c.organization_id = $1 and c.external_id = $2
         order by c.granted_at desc, c.consumable_id desc`,
}
