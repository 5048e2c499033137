// bin/pinned-node --dev scripts/pictures.ts: takes the pictures of docs/dashboard.md from the demo, in a browser,
// and draws that of docs/connect.md. With `drawn` only the latter.
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openApp } from '../src/app.ts'
import { prepareDemo } from '../src/cli/demo/demo.ts'
import { readConfig } from '../src/config.ts'
import { followAll } from '../src/data/figures/follow.ts'
import { openLog } from '../src/lib/log.ts'
import { makeOwnLink, signInAddress } from '../src/operator/dashboard/sessions.ts'
import { startServer } from '../src/server/listeners/server.ts'
import { noBrowser, openBrowser } from '../test/support/browser.ts'
import { CONNECT_HEIGHT, CONNECT_PICTURE } from './connect-picture.ts'

const PICTURES: Record<string, { path: string; height: number }> = {
  today: { path: '/?period=30d', height: 860 },
  funnel: { path: '/funnels/fun_sleep?period=90d', height: 860 },
  revenue: { path: '/revenue?period=12m', height: 860 },
  // The search leads to the page of this person.
  person: { path: '/people?q=user_270', height: 860 },
}
const FOLDER = fileURLToPath(new URL('../docs/pictures/', import.meta.url))
const WIDTH = 1280

if (noBrowser) throw new Error(`${noBrowser}.`)
await drawPictures()
if (process.argv[2] === 'drawn') process.exit()
const dataDir = await mkdtemp(join(tmpdir(), 'tundish-pictures-'))
// Else root's database would be elsewhere, and left there.
await chmod(dataDir, 0o711)
const config = readConfig({ DATA_DIR: dataDir, PORT: '0', ADMIN_PORT: '0' })
const app = await openApp(config, { log: openLog('warn', 2), simulator: 'always' })
try {
  const running = await startServer(app, { worker: false })
  await prepareDemo(app, { url: running.url, adminUrl: running.adminUrl })
  await followAll(app.db)
  const token = await app.db.tx((query) => makeOwnLink(query, 'pictures'))
  await takePictures(running.adminUrl!, signInAddress(running.adminUrl!, token))
  await running.stop()
} finally {
  await app.close()
  await rm(dataDir, { recursive: true, force: true })
}

async function drawPictures(): Promise<void> {
  const { browser, close } = await openBrowser()
  try {
    const page = await browser.newPage({ colorScheme: 'light', viewport: { width: WIDTH, height: CONNECT_HEIGHT } })
    await page.setContent(CONNECT_PICTURE)
    await page.screenshot({ path: join(FOLDER, 'connect.png') })
    process.stdout.write('docs/pictures/connect.png\n')
  } finally {
    await close()
  }
}

async function takePictures(adminUrl: string, link: string): Promise<void> {
  await mkdir(FOLDER, { recursive: true })
  const { browser, close } = await openBrowser()
  try {
    const page = await browser.newPage({ colorScheme: 'light' })
    await page.goto(link, { waitUntil: 'networkidle' })
    for (const [name, { path, height }] of Object.entries(PICTURES)) {
      await page.setViewportSize({ width: WIDTH, height })
      await page.goto(adminUrl + path, { waitUntil: 'networkidle' })
      await page.screenshot({ path: join(FOLDER, `${name}.png`) })
      process.stdout.write(`docs/pictures/${name}.png\n`)
    }
  } finally {
    await close()
  }
}
