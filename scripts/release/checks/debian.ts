// The .deb: apt installs it in a bare root; it makes user and folders, and starts nothing.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '../run.ts'
import { withRoot } from './roots.ts'
import { chargeDemo, serving } from './serving.ts'

const PORT = '18280'
const MASTER_KEY = Buffer.alloc(32, 'k').toString('base64')
// 0 is a sandbox, 10 is none. Without the sandbox of the unit it is above 9.
const MOST_EXPOSED = 4
const UNIT = '/usr/lib/systemd/system/tundish.service'
const URL = `http://127.0.0.1:${PORT}`

export async function tryDebian(out: string, version: string): Promise<string> {
  const name = `tundish_${version}_${process.arch === 'x64' ? 'amd64' : 'arm64'}.deb`
  return withRoot('debian', async (root) => {
    run('cp', [join(out, name), join(root, 'tmp')])
    const inside = (...args: string[]) =>
      run('chroot', [
        root,
        'env',
        'DEBIAN_FRONTEND=noninteractive',
        'PATH=/usr/sbin:/usr/bin:/sbin:/bin',
        ...args,
      ]).toString()
    inside('apt-get', 'update')
    inside('apt-get', 'install', '-y', '--no-install-recommends', `/tmp/${name}`)
    const owner = inside('stat', '-c', '%U:%G %a', '/var/lib/tundish', '/etc/tundish.env').trim().split('\n').join(', ')
    if (owner !== 'tundish:tundish 750, root:tundish 640') throw new Error(`The owners and modes are ${owner}.`)
    if (existsSync(join(root, 'var/lib/tundish/data'))) throw new Error('The package started the service.')
    checkUnit(inside)
    const command = [
      'setpriv',
      '--reuid=tundish',
      '--regid=tundish',
      '--clear-groups',
      '--reset-env',
      'env',
      `PORT=${PORT}`,
    ]
    const server = await serving(
      'chroot',
      [root, ...command, 'tundish', '--env-file', '/etc/tundish.env', 'serve', '--demo'],
      URL,
    )
    await chargeDemo(URL, server.output)
    await server.stop()
    inside('tundish', '--version')
    inside('install', '-d', '/var/cache/tundish')
    appendFileSync(join(root, 'etc/tundish.env'), `MASTER_KEY=${MASTER_KEY}\n`)
    inside('apt-get', 'remove', '-y', 'tundish')
    for (const folder of ['opt/tundish', 'var/cache/tundish'])
      if (existsSync(join(root, folder))) throw new Error(`The removal left /${folder}.`)
    inside('apt-get', 'purge', '-y', 'tundish')
    if (existsSync(join(root, 'etc/tundish.env'))) throw new Error('The purge left the settings.')
    const kept = inside('stat', '-c', '%U %a', '/var/backups/tundish.env').trim()
    if (kept !== 'root 600' || !readFileSync(join(root, 'var/backups/tundish.env'), 'utf8').includes(MASTER_KEY))
      throw new Error(`The purge did not keep the master key: ${kept}.`)
    if (!existsSync(join(root, 'var/lib/tundish/data'))) throw new Error('The purge removed the data.')
    return `installed by apt, not started; the unit accepted and confined; a charge made as the user tundish; removed and purged, the data and the master key stay`
  })
}

/** Throws unless systemd accepts the unit, with its programs, and finds that it is confined. */
function checkUnit(inside: (...args: string[]) => string): void {
  inside('apt-get', 'install', '-y', '--no-install-recommends', 'systemd', 'procps')
  inside('systemd-analyze', 'verify', UNIT)
  inside('systemd-analyze', 'security', '--offline=true', `--threshold=${MOST_EXPOSED * 10}`, UNIT)
}
