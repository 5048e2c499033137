// What was promised before a restore holds after it: syncs miss nothing, reports stay in order, no charge is made twice.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type Billing, settled, startBilling } from '../../support/billing.ts'
import { tundish } from '../../support/cli.ts'
import { startTestServer } from '../../support/server.ts'
import { until } from '../../support/time.ts'
import { type Installation, MASTER_KEY, openInstallations } from './installations.ts'

const { source, target, file } = await openInstallations('clocks.backup')

describe('a clock', () => {
  const raise = ({ db }: Installation, by: string) =>
    db.tx(async (query) => {
      const [row] = await query('select db_clock() + $1::interval as at', [by])
      await query('update project_clocks set floor = $1, horizon = $1', [row!.at!])
      await query('update organization_clocks set last_trx_created_at = $1', [row!.at!])
    })

  /** By how many hours the clocks are ahead of the present. */
  const ahead = async ({ db }: Installation) => {
    const [row] = await db.query(`
      select round(extract(epoch from floor - db_clock()) / 3600) as floor, floor > db_clock() - interval '1 minute' as fresh,
        round(extract(epoch from last_trx_created_at - db_clock()) / 3600) as report,
        round(extract(epoch from horizon - db_clock()) / 3600) as horizon
      from project_clocks, organization_clocks`)
    return [row!.floor, row!.report, row!.fresh, row!.horizon]
  }

  test('is raised to the present: readers may have been served after the backup was made', async () => {
    await raise(source, '-5 hours')
    await source.json('backup', file)
    await target.json('restore', file, '--without-erasures')
    assert.deepEqual(await ahead(target), ['0', '0', 't', '-5'])
  })

  test('is that of the replaced database if that was ahead', async () => {
    await raise(target, '2 hours')
    await target.json('restore', file, '--without-erasures', '--replace')
    assert.deepEqual(await ahead(target), ['2', '2', 't', '2'])
  })

  test('is that of the backup if that was ahead', async () => {
    await raise(source, '7 hours')
    await source.json('backup', file, '--force')
    await target.json('restore', file, '--without-erasures', '--replace')
    assert.deepEqual(await ahead(target), ['7', '7', 't', '7'])
  })
})

describe('a reader of changes', () => {
  test('is told which records are void if it has read changes that the backup lacks; others are not', async () => {
    const old = await startTestServer({ MASTER_KEY })
    const server = await startTestServer({ MASTER_KEY })
    try {
      const project = await old.project()
      const horizonOf = async (from: string) =>
        String((await project.get('/profiles', { 'filter[updated_at.from]': from })).headers['x-sync-horizon'])
      const early = await horizonOf('2020-01-01T00:00:00Z')
      const file = join(old.env.DATA_DIR!, 'readers.backup')
      const made = await tundish(['backup', file, '--json'], old.env)
      assert.equal(made.code, 0, made.stderr)
      let late = early
      await until('a later horizon', async () => {
        late = await horizonOf(early)
        return late > early
      })
      await until('a beat', async () => (await server.db.query('select 1 from commit_beat')).length > 0)
      const restored = await tundish(['restore', file, '--without-erasures', '--json'], server.env)
      assert.equal(restored.code, 0, restored.stderr)
      const told = async (from: string) => {
        const path = `/profiles?${new URLSearchParams({ 'filter[updated_at.from]': from })}`
        return (await server.api(path, { key: project.key })).headers['x-void-from']
      }
      // The horizon of the backup, which background work may have advanced since it was read.
      const voidFrom = String(await told(late))
      assert.ok(early <= voidFrom && voidFrom < late, `${early} ${voidFrom} ${late}`)
      assert.equal(await told(early), undefined)
      const beats = async () => Number((await server.db.query('select number from commit_beat'))[0]!.number)
      await until('beats to go on', async () => (await beats()) > 0)
      assert.deepEqual(await server.db.query('select 1 from failovers'), [], 'A restore is no failover.')
    } finally {
      await server.stop()
      await old.stop()
    }
  })
})

describe('a charge', () => {
  let billing: Billing
  before(async () => {
    // Nobody settles there: the database is lost before.
    billing = await startBilling({ MASTER_KEY }, { worker: false })
  })
  after(() => billing.stop())

  test('in progress is settled by asking the provider, and one made after the backup has the response it had', async () => {
    const shop = await billing.organization('shop')
    const lost = await shop.customer({ token: 'sim_charge_then_drop' })
    const never = await shop.customer({ token: 'sim_drop_no_charge' })
    const forgotten = await shop.customer()
    const unknown = await shop.charge(lost, { idempotency_key: 'lost' })
    const unseen = await shop.charge(never, { idempotency_key: 'never' })
    assert.deepEqual([unknown.body.checkout_status, unseen.body.checkout_status], ['processing', 'processing'])
    const file = join(billing.server.env.DATA_DIR!, 'charges.backup')
    const made = await tundish(['backup', file, '--json'], billing.server.env)
    assert.equal(made.code, 0, made.stderr)
    assert.equal((await shop.charge(forgotten, { idempotency_key: 'after' })).body.checkout_status, 'succeeded')

    const { SIMULATOR_URL, PROVIDER_TIMEOUT_MS } = billing.server.env as Record<string, string>
    const server = await startTestServer({
      MASTER_KEY,
      SIMULATOR_URL: SIMULATOR_URL!,
      PROVIDER_TIMEOUT_MS: PROVIDER_TIMEOUT_MS!,
    })
    try {
      const restored = await tundish(['restore', file, '--without-erasures', '--json'], server.env)
      assert.equal(restored.code, 0, restored.stderr)
      assert.equal(JSON.parse(restored.stdout).in_progress, 2)
      const charge = (external_id: string, idempotency_key: string) =>
        server.call('/shop/v1/payment/one_off_charge', {
          method: 'POST',
          headers: ['service-secret-key', shop.key],
          body: { external_id, amount: '10.50', currency_code: 'USD', idempotency_key },
        })
      const found = await settled(() => charge(lost, 'lost'))
      assert.deepEqual(
        [found.body.checkout_status, found.body.order_id, found.body.idempotent_replay],
        ['succeeded', unknown.body.order_id, true],
      )
      assert.equal((await settled(() => charge(never, 'never'))).body.checkout_status, 'cancelled')
      assert.equal((await settled(() => charge(forgotten, 'after'))).body.checkout_status, 'succeeded')
    } finally {
      await server.stop()
    }
    const charges = (await billing.ledger()).filter(({ type }) => type === 'charge')
    assert.equal(charges.length, 2, 'one for each of the two that were charged')
  })
})
