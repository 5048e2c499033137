// The .deb: apt installs it in a bare root; it makes user and folders, and starts nothing.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '../run.ts'
import { withRoot } from './roots.ts'
import { chargeDemo, serving } from './serving.ts'

const PORT = '18280'
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
    inside('apt-get', 'remove', '-y', 'tundish')
    inside('apt-get', 'purge', '-y', 'tundish')
    if (!existsSync(join(root, 'var/lib/tundish/data'))) throw new Error('The purge removed the data.')
    return 'installed by apt, not started; a charge made as the user tundish; removed and purged, the data stays'
  })
}
