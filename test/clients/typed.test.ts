// Each package for Python says that it has types, so that a type checker reads them.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

const CLIENTS = join(import.meta.dirname, '../../clients')

for (const [folder, name] of [
  ['python', 'tundish'],
  ['dlt', 'tundish_dlt'],
] as const)
  test(`${name} is packed with its mark of types`, () => {
    assert.ok(existsSync(join(CLIENTS, folder, name, 'py.typed')))
    const project = readFileSync(join(CLIENTS, folder, 'pyproject.toml'), 'utf8')
    assert.ok(project.includes(`[tool.setuptools.package-data]\n${name} = ["py.typed"]`))
  })
