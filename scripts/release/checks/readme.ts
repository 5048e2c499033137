// The README's three ways to start, by its own lines: until the demo is there, has charged once, and stops.
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '../run.ts'
import { ROOT } from '../source.ts'
import { ENV, STORE } from './image.ts'
import { chargeDemo, serving } from './serving.ts'

const PORT = 18480
const URL = `http://127.0.0.1:${PORT}`
const VOLUME = 'tundish'

export async function tryReadme(out: string, version: string): Promise<string> {
  const ways: Record<string, (folder: string) => void> = {
    'From an archive': (folder) => {
      const name = `tundish-${version}-linux-x64.tar.gz`
      copyFileSync(join(out, name), join(folder, name))
    },
    'From the image': (folder) => {
      run('podman', [...STORE, 'tag', `localhost/tundish:${version}`, `localhost/tundish:${version.split('.')[0]}`], {
        env: ENV,
      })
      run('podman', [...STORE, 'volume', 'rm', '-f', VOLUME], { env: ENV })
      writeDocker(join(folder, 'docker'))
    },
    'From a clone': (folder) => void run('git', ['clone', '--quiet', ROOT, '.'], { cwd: folder }),
  }
  const results: string[] = []
  for (const [way, prepare] of Object.entries(ways)) {
    const folder = mkdtempSync(join(tmpdir(), 'tundish-readme-'))
    chmodSync(folder, 0o755)
    try {
      prepare(folder)
      results.push(`${way}: ready after ${await start(linesOf(way), folder)}`)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
  return results.join('; ')
}

/** Runs the lines in the folder; returns how long it took until the demo could be charged. */
async function start(lines: string, folder: string): Promise<string> {
  const began = performance.now()
  const settings = [`PORT=${PORT}`, `DATA_DIR=${join(folder, 'data')}`, `PATH=${folder}:${process.env['PATH']}`]
  const home = join(folder, 'home')
  mkdirSync(home)
  // exec, so that the signal reaches the program; an archive is started by its last line.
  const script = lines
    .trim()
    .split('\n')
    .with(-1, `exec ${lines.trim().split('\n').at(-1)}`)
    .join('\n')
  const command = ['-C', folder, ...settings, `HOME=${home}`, 'sh', '-euc', script]
  const server = await serving('env', command, URL)
  await chargeDemo(URL, server.output)
  const seconds = Math.round((performance.now() - began) / 1000)
  await server.stop()
  return `${(server.readyMs / 1000).toFixed(1)} s, charged after ${seconds} s`
}

/** The lines of the README below this way. */
function linesOf(way: string): string {
  const text = readFileSync(join(ROOT, 'README.md'), 'utf8')
  const [, lines] = new RegExp(`^\\*\\*${way}\\*\\*.*?\`\`\`sh\\n(.*?)\`\`\``, 'ms').exec(text) ?? []
  if (!lines) throw new Error(`The README has no lines "${way}".`)
  return lines
}

/** A program "docker" that runs podman without a daemon: on the network of the machine, because ports cannot be published here. */
function writeDocker(file: string): void {
  const network = `--network=host -e HOST=127.0.0.1 -e PORT=${PORT} -e ADMIN_PORT=${PORT + 1}`
  const limits = '--ulimit=nofile=1024:1024 --ulimit=nproc=1024:1024'
  const script = `#!/bin/sh
set -eu
[ "$1" = run ]; shift
options=
while [ $# -gt 0 ]; do
  case "$1" in
    -p) shift 2 ;;
    -e | -v) options="$options $1 $2"; shift 2 ;;
    --*) options="$options $1"; shift ;;
    *) break ;;
  esac
done
export STORAGE_DRIVER=vfs
exec podman ${STORE.join(' ')} --runtime /usr/sbin/runc run $options ${network} ${limits} "$@"
`
  writeFileSync(file, script)
  chmodSync(file, 0o755)
}
