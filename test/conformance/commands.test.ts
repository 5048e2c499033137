// The commands in the guides exist, with the options that the guides give them.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { tundishAgain } from '../support/resident.ts'

const ROOT = join(import.meta.dirname, '../..')
const PAGES = [
  'README.md',
  'SECURITY.md',
  'clients/js/README.md',
  ...readdirSync(join(ROOT, 'docs')).flatMap((name) => (name.endsWith('.md') ? [`docs/${name}`] : [])),
]
const EVERYWHERE = ['--help', '--json', '--env-file', '--version']

/** The commands in the shell blocks and code spans of a page, each as its words. */
function commandsIn(page: string): string[][] {
  const text = readFileSync(join(ROOT, page), 'utf8').replaceAll(/\\\n/g, ' ')
  const blocks = [...text.matchAll(/```sh\n([\s\S]+?)```/g)].flatMap(([, code]) => code!.split(/\n|\s[|;&]+\s/))
  const spans = [...text.replaceAll(/```[\s\S]+?```/g, '').matchAll(/`([^`]+)`/g)].map(([, code]) => code!)
  return [...blocks, ...spans].flatMap((code) => {
    const [, rest] = /(?:^\s*|bin\/|[A-Z_]=\S+ )tundish ([a-z][^#"]*)/.exec(code) ?? []
    return rest === undefined
      ? []
      : [
          rest
            .split(' -- ')[0]!
            .replaceAll(/[[\]()]/g, ' ')
            .trim()
            .split(/\s+/),
        ]
  })
}

const helps = new Map<string, Promise<string>>()
function helpOf(words: string[]): Promise<string> {
  const name = words.join(' ')
  const known = helps.get(name) ?? tundishAgain([...words, '--help']).then(({ stdout }) => stdout)
  helps.set(name, known)
  return known
}

/** The commands that the words name: `keys list|create` names two. `import` has commands, or files after it. */
async function named([first = '', second = '', ...more]: string[], above: string[] = []): Promise<string[][]> {
  const group = [...above, first]
  const isGroup = (await helpOf(group)).includes('\nCommands:\n')
  if (!isGroup || (first === 'import' && !['stripe', 'primer', 'api'].includes(second))) return [group]
  const subcommands = second.split('|').filter((word) => /^[a-z-]+$/.test(word) && !word.startsWith('--'))
  if (subcommands.length === 0) return [group]
  return (await Promise.all(subcommands.map((word) => named([word, ...more], group)))).flat()
}

for (const page of PAGES)
  test(`the commands of ${page} exist, with their options`, async () => {
    const wrong: string[] = []
    for (const words of commandsIn(page)) {
      const names = await named(words)
      const helpTexts = await Promise.all(names.map(helpOf))
      const exists = names.every((name, n) => helpTexts[n]!.startsWith(`Usage: tundish ${name.join(' ')} `))
      const options = words.flatMap((word) => /^--[a-z-]+/.exec(word)?.[0] ?? [])
      const missing = options.filter(
        (option) => !EVERYWHERE.includes(option) && !helpTexts.some((help) => new RegExp(`${option}\\b`).test(help)),
      )
      if (!exists || missing.length > 0) wrong.push(words.join(' '))
    }
    assert.deepEqual(wrong, [])
  })

test('commands.md names every command of every group in its section', async () => {
  const page = readFileSync(join(ROOT, 'docs/commands.md'), 'utf8')
  const missing: string[] = []
  let seen = 0
  async function walk(words: string[], section: string): Promise<void> {
    const list = (await helpOf(words)).split('\nCommands:\n')[1] ?? ''
    for (const [, name] of list.matchAll(/^ {2}([a-z][a-z-]*)(?= )/gm)) {
      if (name === 'help') continue
      seen += 1
      if (!new RegExp(`[\\s|\`]${name}\\b(?!-)`).test(section)) missing.push([...words, name].join(' '))
      await walk([...words, name!], section)
    }
  }
  for (const [, command, section] of page.matchAll(/^## (\S+)\n([\s\S]*?)(?=^## |$(?![\s\S]))/gm))
    await walk([command!], section!)
  assert.ok(seen > 100)
  assert.deepEqual(missing, [])
})
