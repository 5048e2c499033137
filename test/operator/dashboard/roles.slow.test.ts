// The pages of each role: what it may not open is not linked, what it may not do has no form, and nobody's name is on a page of figures.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Access, ROLES, type Role } from '../../../src/core/tenants/access.ts'
import { createOperator } from '../../../src/core/tenants/operator-keys.ts'
import { FORM_NEEDS, needOf, PAGE_NEEDS } from '../../../src/operator/dashboard/needs.ts'
import { actions, pages } from '../../../src/operator/dashboard/routes.ts'
import { makeTenant, type TenantWithKeys } from '../../conformance/tenant-pair.ts'
import { type Billing, startBilling } from '../../support/billing.ts'
import { visitorOf } from '../../support/dashboard.ts'

const OF_FIGURES = [
  '/',
  '/funnels',
  '/funnels/:funnel_id',
  '/funnels/:funnel_id/screens/:screen_id',
  '/revenue',
  '/acquisition',
  '/worth',
  '/experiments',
  '/hours',
  '/movements',
  '/churn',
  '/declines',
  '/subscriptions',
  '/charges',
  '/credits',
  '/projects',
]
const PAGES: Partial<Record<Role, string[]>> = {
  finance: [...OF_FIGURES, '/refunds', '/finance', '/finance/differences', '/payouts'],
  analyst: OF_FIGURES,
}

test('every page and form says what it needs', () => {
  assert.deepEqual(Object.keys(PAGE_NEEDS).sort(), Object.keys(pages).sort())
  const forms = Object.keys(FORM_NEEDS).map((path) => path.replace(/^\/keys\/(organization|project)/, '/keys/:owner'))
  assert.deepEqual([...new Set(forms)].sort(), Object.keys(actions).sort())
})

describe('pages of each role', () => {
  let billing: Billing
  let tenant: TenantWithKeys
  let browser: ReturnType<typeof visitorOf>
  before(async () => {
    billing = await startBilling({ WEBHOOK_ALLOW_PRIVATE: 'true' }, { worker: false })
    tenant = await makeTenant(billing, 'mine')
    await makeTenant(billing, 'theirs')
    // So that the page Finance, which begins with the month that is over, offers to close it.
    await billing.db.query(`update finance_months set month = date_trunc('month', now()) - interval '2 months'`)
    browser = visitorOf(billing.server.adminUrl)
  })
  after(() => billing.stop())

  const NAMES: Record<string, keyof TenantWithKeys> = {
    organization_id: 'organization',
    order_id: 'order',
    event_id: 'event',
  }
  const filled = (path: string) =>
    `${path.replace(/:(\w+)/g, (_, name: string) => tenant[NAMES[name] ?? 'mark'])}?project=${tenant.project}&period=1y`
  const signedIn = async (access: Partial<Access>) => {
    const given = { name: 'test', ...access } as Parameters<typeof createOperator>[1]
    return browser.signIn((await billing.db.tx((query) => createOperator(query, given))).key)
  }
  const linksOf = (text: string) =>
    [...text.matchAll(/<a [^>]*?href="(\/[^"]*)"/g)]
      .map(([, href]) => href!.replaceAll('&amp;', '&'))
      .filter((href) => needOf(PAGE_NEEDS, href) !== undefined)
  const formsOf = (text: string) =>
    [...text.matchAll(/<form method="post" action="([^"]+)"/g)]
      .map(([, href]) => href!.replaceAll('&amp;', '&'))
      .filter((href) => needOf(FORM_NEEDS, href) !== undefined)

  /** Opens every page, and then each link and form that they have. Returns the paths of the forms. */
  async function walk(cookie: string, isOpen: (path: string) => boolean, unseen: string[]): Promise<Set<string>> {
    const links = new Set<string>()
    const forms = new Set<string>()
    for (const path of Object.keys(pages)) {
      const { status, text } = await browser.visit(filled(path), { cookie })
      const isRefused = status === 403 || (status === 404 && /There is no (organization|project) /.test(text))
      assert.equal(!isRefused, isOpen(path), `${path}: ${status}`)
      assert.ok(status < 500, path)
      for (const name of unseen) assert.ok(!text.includes(name), `${path} names ${name}`)
      for (const one of linksOf(text)) links.add(one.replace(/&csv=.*/, ''))
      for (const one of formsOf(text)) forms.add(one)
      for (const [, csv] of text.matchAll(/csv=([a-z-]+)" hx-boost="false"/g)) {
        const table = await browser.visit(`${filled(path)}&csv=${csv}`, { cookie })
        for (const name of unseen) assert.ok(!table.text.includes(name), `${csv} of ${path} names ${name}`)
      }
    }
    const seen = new Set<string>()
    for (const href of links) {
      const [path] = href.split('?')
      if (seen.has(path!)) continue
      seen.add(path!)
      const { status } = await browser.visit(href, { cookie })
      assert.ok(status === 200 || status === 303, `the link ${href}: ${status}`)
    }
    const sent = new Set([...forms].map((href) => href.split('?')[0]!))
    for (const path of Object.keys(actions)) {
      const target = filled(path.replace(':owner/:owner_id', `project/${tenant.project}`))
      const { status } = await browser.visit(target, { cookie, form: { none: 'x' } })
      if (status === 403) assert.ok(!sent.has(target.split('?')[0]!), `${path} is shown, and 403`)
    }
    return sent
  }

  for (const role of ROLES)
    test(role, async () => {
      const seesPeople = !PAGES[role]
      const cookie = await signedIn({ role, ...(role === 'support' && { refundLimits: { USD: '50' } }) })
      const unseen = seesPeople ? [] : [tenant.customer, '@example', '@']
      const forms = await walk(cookie, (path) => PAGES[role]?.includes(path) ?? true, unseen)
      const kinds = new Set([...forms].map((path) => path.split('/')[1]))
      const expected: Record<Role, string[]> = {
        owner: [
          'alerts',
          'charges',
          'finance',
          'keys',
          'merchant-accounts',
          'payouts',
          'people',
          'projects',
          'settings',
          'webhooks',
        ],
        developer: ['alerts', 'keys', 'merchant-accounts', 'settings', 'webhooks'],
        support: ['charges', 'people', 'webhooks'],
        finance: ['finance', 'payouts'],
        analyst: [],
        read: [],
      }
      assert.deepEqual([...kinds].sort(), expected[role])
      const { text } = await browser.visit('/', { cookie })
      assert.equal(text.includes('placeholder="Part of an e-mail, or an ID"'), seesPeople)
    })

  test('an owner of one organization, and of one project', async () => {
    const ofAll = ['/doctor', '/audit']
    const whole = await signedIn({ role: 'owner', reach: { organizations: ['mine'], projects: [] } })
    await walk(whole, (path) => !ofAll.includes(path), ['theirs'])
    const part = await signedIn({ role: 'owner', reach: { organizations: [], projects: [tenant.project] } })
    await walk(
      part,
      (path) =>
        ![...ofAll, '/merchant-accounts', '/credits', '/finance', '/finance/differences', '/payouts'].includes(path),
      ['theirs'],
    )
    const other = await browser.visit('/?project=theirs-app', { cookie: part })
    assert.equal(other.status, 404)
  })

  test('pages without records have no link that is refused', async () => {
    const { id } = await billing.server.project()
    for (const role of ROLES) {
      const cookie = await signedIn({ role })
      const seen = new Set<string>()
      for (const page of Object.keys(pages).filter((path) => !path.includes(':'))) {
        const { text } = await browser.visit(`${page}?project=${id}`, { cookie })
        for (const href of linksOf(text)) {
          const [path] = href.split('?')
          if (seen.has(path!)) continue
          seen.add(path!)
          const { status } = await browser.visit(href, { cookie })
          assert.ok(status === 200 || status === 303, `${role}: the link ${href} of ${page}: ${status}`)
        }
      }
    }
  })

  test('support sees the form of a refund up to its limit, and none without one', async () => {
    const path = filled('/charges/:organization_id/:order_id')
    const limited = await browser.visit(path, {
      cookie: await signedIn({ role: 'support', refundLimits: { USD: '7' } }),
    })
    assert.match(limited.text, /You may still refund up to [^<]*7[.]00/)
    const none = await browser.visit(path, { cookie: await signedIn({ role: 'support' }) })
    assert.doesNotMatch(none.text, /Refund…/)
  })
})
