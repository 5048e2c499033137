// The .deb of a platform: the staged tree in /opt/tundish, the unit and the settings of deploy/systemd.
import { chmodSync, copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Platform } from './platforms.ts'
import { run } from './run.ts'
import { ROOT, type Source } from './source.ts'
import { copyTree } from './stage.ts'

const DEBIAN = join(ROOT, 'deploy/debian')

/** Builds the package from the staged `tree`, and returns its file name in `out`. */
export function packDebian(tree: string, platform: Platform, out: string, { version, epoch }: Source): string {
  const root = `${tree}.deb`
  rmSync(root, { recursive: true, force: true })
  for (const folder of ['DEBIAN', 'etc', 'opt', 'usr/bin', 'usr/lib/systemd/system', 'usr/share/doc/tundish'])
    mkdirSync(join(root, folder), { recursive: true, mode: 0o755 })
  copyTree(tree, join(root, 'opt/tundish'))
  symlinkSync('/opt/tundish/bin/tundish', join(root, 'usr/bin/tundish'))
  copyFileSync(join(ROOT, 'LICENSE'), join(root, 'usr/share/doc/tundish/copyright'))
  copyFileSync(join(ROOT, 'deploy/systemd/tundish.service'), join(root, 'usr/lib/systemd/system/tundish.service'))
  copyFileSync(join(ROOT, 'deploy/systemd/tundish.env'), join(root, 'etc/tundish.env'))
  const kibibytes = run('du', ['-sk', '--apparent-size', root]).toString().split('\t')[0]!
  const control = readFileSync(join(DEBIAN, 'control'), 'utf8')
    .replace('@VERSION@', version.replace('-', '~'))
    .replace('@ARCHITECTURE@', platform.debian!)
    .replace('@SIZE@', kibibytes)
  writeFileSync(join(root, 'DEBIAN/control'), control)
  copyFileSync(join(DEBIAN, 'conffiles'), join(root, 'DEBIAN/conffiles'))
  for (const script of ['postinst', 'prerm', 'postrm']) {
    cpSync(join(DEBIAN, script), join(root, 'DEBIAN', script))
    chmodSync(join(root, 'DEBIAN', script), 0o755)
  }
  run('chmod', ['-R', 'u+rwX,go+rX,go-w', root])
  const name = `tundish_${version}_${platform.debian}.deb`
  run('dpkg-deb', ['--root-owner-group', '-Zgzip', '--build', root, join(out, name)], {
    env: { ...process.env, SOURCE_DATE_EPOCH: epoch },
  })
  return name
}
