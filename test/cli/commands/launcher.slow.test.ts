// bin/pinned-node and bin/tundish: which Node runs, what is installed and when, on a copy with an npm that only takes notes.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { NOBODY, ROOT } from '../../lib/embedded/embedded.ts'
import { temporaryFolder } from '../../support/folder.ts'

const PLATFORM = `${process.platform}-${process.arch}`
const PINNED = ['linux-x64', 'linux-arm64', 'darwin-x64'].includes(PLATFORM)

// "Installs" by linking the Node that runs us, and writes the record that npm leaves.
const NPM = `#!/bin/sh
mkdir -p node_modules/begun
touch node_modules/begun/half
sleep "\${NPM_TAKES:-0}" &
trap "kill $!; exit 143" TERM
echo "$*" >>"$NOTES"
cache=\${npm_config_cache:-$HOME/.npm}
mkdir -p "$cache" || exit 1
touch "$cache/used"
wait $!
[ -z "\${NPM_FAILS:-}" ] || { echo 'npm error network down' >&2; exit 1; }
mkdir -p node_modules/node-${PLATFORM}/bin
ln -sf '${process.execPath}' node_modules/node-${PLATFORM}/bin/node
case "$*" in *--include=dev*) mkdir -p node_modules/typescript ;; esac
echo "installed with $*" >node_modules/.package-lock.json
`

/** A checkout of nothing but the launcher and a program that prints what it was given. */
function checkout() {
  const root = temporaryFolder()
  cpSync(join(import.meta.dirname, '../../../bin'), join(root, 'bin'), { recursive: true })
  mkdirSync(join(root, 'src'))
  writeFileSync(
    join(root, 'src/main.ts'),
    'console.log(JSON.stringify([process.pid, process.cwd(), ...process.argv.slice(2)]))',
  )
  writeFileSync(join(root, 'package-lock.json'), '{}')
  mkdirSync(join(root, 'path'))
  writeFileSync(join(root, 'path/npm'), NPM, { mode: 0o755 })
  const notes = join(root, 'notes')
  writeFileSync(notes, '')
  const env = { PATH: `${join(root, 'path')}:/usr/bin:/bin`, NOTES: notes }
  const run = (args: string[], more: Record<string, string> = {}) =>
    spawnSync(join(root, 'bin/tundish'), args, { cwd: tmpdir(), encoding: 'utf8', env: { ...env, ...more } })
  const installs = () => readFileSync(notes, 'utf8').split('\n').slice(0, -1)
  return { root, env, run, installs }
}

test('the first start installs without the development tools, the second installs nothing', { skip: !PINNED }, () => {
  const { run, installs } = checkout()
  const first = run(['import', 'a b', '*'])
  assert.equal(first.status, 0, first.stderr)
  assert.deepEqual(JSON.parse(first.stdout).slice(1), [tmpdir(), 'import', 'a b', '*'])
  assert.match(first.stderr, /^tundish: Installing dependencies with npm: 300 MB .+ It takes a minute or two\.\n$/)
  assert.equal(run([]).stderr, '')
  assert.equal(installs().length, 1)
  assert.match(installs()[0]!, /^install --no-save --omit=dev .*--ignore-scripts/)
})

test('another lockfile or an install by hand is checked again; installed tools stay', {
  skip: !PINNED,
}, () => {
  const { root, env, run, installs } = checkout()
  run([])
  appendFileSync(join(root, 'package-lock.json'), '\n')
  run([])
  assert.equal(installs().length, 2)
  spawnSync(join(root, 'bin/pinned-node'), ['--dev', '--version'], { env })
  assert.match(installs()[2]!, /--include=dev/)
  run([])
  assert.equal(installs().length, 3)
  appendFileSync(join(root, 'node_modules/.package-lock.json'), 'by hand')
  run([])
  assert.match(installs()[3]!, /--include=dev/)
})

test('a long installation prints every few seconds how much is installed', { skip: !PINNED }, () => {
  const { run } = checkout()
  const { status, stderr } = run([], { NPM_TAKES: '4' })
  assert.equal(status, 0)
  assert.match(stderr, /\n(tundish: \d+ MB so far\.\n)+$/)
})

test('two first starts at once install once', { skip: !PINNED }, async () => {
  const { root, env, installs } = checkout()
  const start = () => spawn(join(root, 'bin/tundish'), [], { env: { ...env, NPM_TAKES: '1' } })
  const codes = await Promise.all([start(), start(), start()].map(async (program) => (await once(program, 'exit'))[0]))
  assert.deepEqual(codes, [0, 0, 0])
  assert.equal(installs().length, 1)
})

test('the lock of a killed start is broken once, whichever process finds it', { skip: !PINNED }, async () => {
  const { root, env, installs } = checkout()
  mkdirSync(join(root, 'node_modules'))
  const dead = spawnSync('true').pid
  symlinkSync(String(dead), join(root, 'node_modules/.tundish-installing'))
  const start = () => spawn(join(root, 'bin/tundish'), [], { env: { ...env, NPM_TAKES: '0.5' } })
  const codes = await Promise.all([start(), start()].map(async (program) => (await once(program, 'exit'))[0]))
  assert.deepEqual(codes, [0, 0])
  assert.equal(installs().length, 1)
  assert.equal(lstatSync(join(root, 'node_modules/.tundish-installing'), { throwIfNoEntry: false }), undefined)
})

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  test(`${signal} ends an installation at once; the next start removes what it left and installs again`, {
    skip: !PINNED,
  }, async () => {
    const { root, env, run, installs } = checkout()
    mkdirSync(join(root, 'clients/js/node_modules/half'), { recursive: true })
    const program = spawn(join(root, 'bin/tundish'), [], { env: { ...env, NPM_TAKES: '600' }, detached: true })
    const stderr = text(program.stderr)
    for (let waits = 0; installs().length === 0 && waits < 1500; waits++) await sleep(20)
    process.kill(-program.pid!, signal)
    const [code] = await once(program, 'exit')
    assert.equal(code, signal === 'SIGINT' ? 130 : 143)
    assert.match(await stderr, /tundish: Interrupted: the next start installs again\.\n$/)
    assert.ok(!existsSync(join(root, 'node_modules/.tundish-installed')))
    assert.equal(lstatSync(join(root, 'node_modules/.tundish-installing'), { throwIfNoEntry: false }), undefined)
    writeFileSync(join(root, 'node_modules/begun/from-the-killed-npm'), '')
    assert.equal(run([]).status, 0)
    assert.equal(installs().length, 2)
    assert.deepEqual(readdirSync(join(root, 'node_modules/begun')), ['half'])
    assert.ok(!existsSync(join(root, 'clients/js/node_modules')))
  })

test('the package for DuckDB that was installed by hand is kept', { skip: !PINNED }, () => {
  const { root, run, installs } = checkout()
  run([])
  mkdirSync(join(root, 'node_modules/@duckdb/node-api'), { recursive: true })
  appendFileSync(join(root, 'node_modules/.package-lock.json'), 'by hand')
  run([])
  assert.doesNotMatch(installs()[0]!, /duckdb/)
  assert.match(installs()[1]!, /^install --no-save --omit=dev --include=optional @duckdb\/node-api --ignore-scripts /)
})

test('npm that fails by itself has restored what was there, and it stays', { skip: !PINNED }, () => {
  const { root, run } = checkout()
  run([])
  writeFileSync(join(root, 'node_modules/begun/by-hand'), '')
  appendFileSync(join(root, 'package-lock.json'), '\n')
  assert.equal(run([], { NPM_FAILS: 'yes' }).status, 2)
  assert.equal(run([]).status, 0)
  assert.ok(existsSync(join(root, 'node_modules/begun/by-hand')))
})

test('npm has its cache in the home of the user or where a setting says, and without a home in node_modules until it is done', {
  skip: !PINNED,
}, () => {
  const { root, run } = checkout()
  const none = join(root, 'notes/no-folder')
  const cached = (env: Record<string, string>) => {
    const folder = join(root, 'home')
    mkdirSync(folder)
    const { status, stderr } = run([], Object.fromEntries(Object.entries(env).map(([k, v]) => [k, v || folder])))
    assert.equal(status, 0, stderr)
    assert.ok(!existsSync(join(root, 'node_modules/.tundish-npm-cache')))
    const files = readdirSync(folder, { recursive: true })
    rmSync(folder, { recursive: true })
    appendFileSync(join(root, 'package-lock.json'), '\n')
    return files
  }
  assert.deepEqual(cached({ HOME: '' }), ['.npm', '.npm/used'])
  assert.deepEqual(cached({ HOME: none, npm_config_cache: '' }), ['used'])
  assert.deepEqual(cached({ HOME: none }), [])
})

test('2 and a sentence after the output of npm when npm fails', () => {
  const { run } = checkout()
  const { status, stderr, stdout } = run([], { NPM_FAILS: 'yes' })
  assert.equal(status, 2)
  assert.equal(stdout, '')
  assert.match(stderr, /npm error network down\ntundish: npm could not install the dependencies/)
})

test('2 and a sentence for a user who may not write an installation that is not complete', () => {
  const { root, env } = checkout()
  mkdirSync(join(root, 'node_modules'))
  for (const folder of [root, join(root, 'node_modules')]) chmodSync(folder, 0o555)
  const { status, stderr } = spawnSync(join(root, 'bin/tundish'), [], { encoding: 'utf8', env, ...(ROOT && NOBODY) })
  assert.deepEqual(
    [status, stderr],
    [2, `tundish: ${root} cannot be written: install the dependencies there as its owner, with npm install.\n`],
  )
})

test('without npm the sentence says what to install', () => {
  const { root, env, run } = checkout()
  for (const tool of ['sh', 'uname', 'cksum', 'cat', 'readlink'])
    symlinkSync(`/usr/bin/${tool}`, join(root, 'path', tool))
  rmSync(join(root, 'path/npm'))
  const { status, stderr } = run([], { ...env, PATH: join(root, 'path') })
  assert.equal(status, 2)
  assert.match(stderr, /npm is not on the PATH: install Node.js with npm/)
})

test('where npm brings no Node, one of the PATH serves if it is 24 or newer', () => {
  const { root, run } = checkout()
  writeFileSync(join(root, 'path/npm'), '#!/bin/sh\nmkdir -p node_modules; echo >node_modules/.package-lock.json\n', {
    mode: 0o755,
  })
  writeFileSync(join(root, 'path/node'), '#!/bin/sh\necho v20.20.2\n', { mode: 0o755 })
  const old = run([])
  assert.equal(old.status, 2)
  assert.match(old.stderr, /Tundish needs Node.js 24 or newer/)
  rmSync(join(root, 'path/node'))
  symlinkSync(process.execPath, join(root, 'path/node'))
  const { status, stdout } = run(['doctor'])
  assert.equal(status, 0)
  assert.equal(JSON.parse(stdout)[2], 'doctor')
})

test('it works through symlinks, and the program takes the launcher’s place', { skip: !PINNED }, async () => {
  const { root, env, run } = checkout()
  run([])
  symlinkSync('bin/tundish', join(root, 'first'))
  symlinkSync(join(root, 'first'), join(root, 'path/tundish'))
  const program = spawn('tundish', ['doctor'], { env, cwd: root })
  const [output] = await once(program.stdout, 'data')
  assert.deepEqual(JSON.parse(output), [program.pid, root, 'doctor'])
})
