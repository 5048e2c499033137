// The images, built from the release's own Dockerfile without a daemon: read-only, with a volume, killed, stopped.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { run } from '../run.ts'
import { ROOT } from '../source.ts'
import { bareRoot } from './roots.ts'
import { untilReady } from './serving.ts'

const PORT = '18380'
const URL = `http://127.0.0.1:${PORT}`
export const ENV = { ...process.env, STORAGE_DRIVER: 'vfs', BUILDAH_ISOLATION: 'chroot' }
const BASE = 'localhost/tundish-base:bookworm'
/** Where the images of the checks are. */
export const STORE = ['--root', join(ROOT, '.cache/release/images'), '--runroot', '/run/tundish-images']
const NAME = 'tundish-check'

const buildah = (...args: string[]) =>
  run('buildah', [...STORE, ...args], { env: ENV })
    .toString()
    .trim()
const podman = (...args: string[]) =>
  run('podman', [...STORE, '--runtime', '/usr/sbin/runc', ...args], { env: ENV })
    .toString()
    .trim()

export async function tryImage(out: string, version: string): Promise<string> {
  const container = buildah('from', 'scratch')
  buildah('add', container, bareRoot(), '/')
  buildah('commit', '--rm', container, BASE)
  const sizes = ['full', 'slim'].map((target) => {
    const tag = `localhost/tundish:${version}${target === 'slim' ? '-slim' : ''}`
    const arches = ['--build-arg', `TARGETARCH=${process.arch === 'x64' ? 'amd64' : 'arm64'}`]
    buildah(
      'bud',
      '--network=host',
      '--build-arg',
      `BASE=${BASE}`,
      '--build-arg',
      `VERSION=${version}`,
      ...arches,
      `--target=${target}`,
      '-t',
      tag,
      out,
    )
    return megabytes(tag) - megabytes(BASE)
  })
  spawnSync('podman', [...STORE, 'rm', '-f', NAME], { env: ENV })
  podman('volume', 'rm', '-f', NAME)
  const start = () => {
    const limits = ['--ulimit=nofile=1024:1024', '--ulimit=nproc=1024:1024']
    const settings = ['-e', `PORT=${PORT}`, '-e', 'HOST=127.0.0.1', '-e', `ADMIN_PORT=${Number(PORT) + 1}`]
    podman(
      'run',
      '-d',
      '--name',
      NAME,
      '--network=host',
      '--read-only',
      '--tmpfs=/tmp',
      '-v',
      `${NAME}:/var/lib/tundish`,
      ...limits,
      ...settings,
      `localhost/tundish:${version}`,
    )
  }
  start()
  await untilReady(URL)
  podman('exec', NAME, 'tundish', 'org', 'create', 'acme')
  if (podman('exec', NAME, 'id', '-u') !== '10001') throw new Error('The container does not run as 10001.')
  podman('kill', '--signal=KILL', NAME)
  podman('rm', NAME)
  start()
  await untilReady(URL)
  const organizations = podman('exec', NAME, 'tundish', 'org', 'list', '--json')
  if (!organizations.includes('"acme"')) throw new Error(`After a kill the organization is missing: ${organizations}`)
  podman('stop', '--time=90', NAME)
  const code = podman('inspect', '--format={{.State.ExitCode}}', NAME)
  podman('rm', NAME)
  if (code !== '0') throw new Error(`After SIGTERM the container ended with ${code}.`)
  return `${sizes[0]} MB and ${sizes[1]} MB (slim) above the base; read-only as 10001; killed, started, stopped with 0, data kept`
}

function megabytes(image: string): number {
  return Math.round(Number(podman('image', 'inspect', '--format={{.Size}}', image)) / 1e6)
}
