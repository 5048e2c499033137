// The archive: unpacked in a bare root without Node.js and npm, run as a normal user.
import { join } from 'node:path'
import { run } from '../run.ts'
import { withRoot } from './roots.ts'
import { chargeDemo, serving } from './serving.ts'

const PORT = '18180'
const URL = `http://127.0.0.1:${PORT}`

export async function tryArchive(out: string, version: string): Promise<string> {
  const name = `tundish-${version}-linux-${process.arch}`
  return withRoot('archive', async (root) => {
    run('tar', ['xzf', join(out, `${name}.tar.gz`), '-C', join(root, 'opt')])
    run('chroot', [root, 'useradd', '--create-home', 'visitor'])
    const command = (...args: string[]) => [
      root,
      'setpriv',
      '--reuid=visitor',
      '--regid=visitor',
      '--clear-groups',
      '--reset-env',
      'env',
      `PORT=${PORT}`,
      'DATA_DIR=/home/visitor/data',
      `/opt/${name}/bin/tundish`,
      ...args,
    ]
    const printed = run('chroot', command('--version')).toString().trim()
    if (printed !== version) throw new Error(`--version printed ${printed}.`)
    const first = await serving('chroot', command('serve', '--demo'), URL)
    await chargeDemo(URL, first.output)
    await first.stop()
    const second = await serving('chroot', command('serve'), URL)
    await second.stop()
    return `ready after ${first.readyMs} ms with a new database, ${second.readyMs} ms with the old one; a charge made once; stopped with 0`
  })
}
