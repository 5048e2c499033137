// The client packages, installed from their built files in clean environments.
import { spawnSync } from 'node:child_process'
import { globSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '../run.ts'

const NODES = ['20', '22', '24']
const PYTHONS = ['3.10', '3.11', '3.12', '3.13']

// A refused connection is the client's error: everything that an application imports was loaded and used.
const JAVASCRIPT = `
import { Tundish, TundishConnectionError } from '@tundish/client'
const tundish = new Tundish({ url: 'http://127.0.0.1:9', projectKey: 'secret_x', retries: 0 })
const error = await tundish.funnels.get('x').then(() => undefined, (reason) => reason)
if (!(error instanceof TundishConnectionError)) throw error ?? new Error('There was a response.')
console.log(process.version)
`

export async function tryJavaScript(out: string, version: string): Promise<string> {
  const versions = NODES.map((major) =>
    inFolder((folder) => {
      writeFileSync(join(folder, 'package.json'), '{"type": "module", "private": true}')
      writeFileSync(join(folder, 'index.js'), JAVASCRIPT)
      const client = join(out, `tundish-client-${version}.tgz`)
      const node = `node-linux-${process.arch}@${major}`
      run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', client, node], { cwd: folder })
      return run(join(folder, `node_modules/node-linux-${process.arch}/bin/node`), ['index.js'], { cwd: folder })
        .toString()
        .trim()
    }),
  )
  return `installed from the file and loaded with ${versions.join(', ')}`
}

export async function tryPython(out: string): Promise<string> {
  const wheels = readdirSync(out).filter((name) => name.endsWith('.whl'))
  const programs = new Map(PYTHONS.map((version) => [version, programOf(version)]))
  const found = PYTHONS.filter((version) => programs.get(version) !== undefined)
  for (const version of found)
    inFolder((folder) => {
      run(programs.get(version)!, ['-m', 'venv', folder])
      run(join(folder, 'bin/pip'), ['install', '--quiet', ...wheels.map((wheel) => join(out, wheel))])
      for (const wheel of wheels) run(join(folder, 'bin/python'), ['-c', `import ${wheel.split('-')[0]}`])
    })
  const missing = PYTHONS.filter((version) => !found.includes(version))
  const rest = missing.length > 0 ? `; not on this machine: ${missing.join(', ')}` : ''
  return `${wheels.join(', ')} installed and imported with Python ${found.join(', ')}${rest}`
}

/** The first program of this version that runs: that of a version manager on the PATH may be none. */
function programOf(version: string): string | undefined {
  const root = process.env['PYENV_ROOT'] ?? join(homedir(), '.pyenv')
  const named = [`python${version}`, ...globSync(join(root, `versions/${version}.*/bin/python${version}`))]
  return named.find((program) => spawnSync(program, ['--version']).status === 0)
}

function inFolder<T>(use: (folder: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'tundish-package-'))
  mkdirSync(folder, { recursive: true })
  try {
    return use(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
