// tundish import as a user runs it: files, standard input, and what is printed where.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { program, tundish } from '../../support/cli.ts'
import { line, textOf } from '../../support/imports.ts'
import { tundishAgain } from '../../support/resident.ts'
import { openImportCommand } from './import-command.ts'

const { imports, folder, env, stop } = await openImportCommand()
const project = await imports.project()
after(stop)

const run = (args: string[]) => tundishAgain(['import', '--project', project.id, ...args], env)
const feed = (input: string) => tundish(['import', '--project', project.id, '-'], env, input)

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

const good = textOf([line.profile(), line.session()])

test('files: a summary for people, one JSON document for programs, no progress bar in a pipe', async () => {
  const path = file('good.ndjson', good)
  assert.deepEqual(await run([path]), { code: 0, stdout: '2 lines read: 2 written.\n', stderr: '' })
  const { code, stdout, stderr } = await run([path, '--json', '--live', '--dry-run'])
  assert.deepEqual(
    [code, JSON.parse(stdout), stderr],
    [0, { read: 2, written: 0, unchanged: 2, skipped: 0, erased: 0, rejected: 0 }, ''],
  )
})

test('standard input', async () => {
  assert.deepEqual(await feed(good), { code: 0, stdout: '2 lines read: 0 written, 2 unchanged.\n', stderr: '' })
})

test('an empty time is a bad line, also when it is the first time that the process reads', async () => {
  const { code, stdout, stderr } = await feed(textOf([line.profile({ created_at: '' })]))
  assert.deepEqual([code, stdout], [1, '1 line of 1 is bad: nothing was written.\n'])
  assert.equal(stderr, 'stdin:1: profile.created_at must be an RFC 3339 date-time such as 2026-01-31T23:59:59Z\n')
})

test('1 and the place of a bad line with the reason on standard error', async () => {
  const [first, second] = [file('first.ndjson', good), file('second.ndjson', `${good}{}\n`)]
  const { code, stdout, stderr } = await run([first, second])
  assert.deepEqual([code, stdout], [1, '1 line of 5 is bad: nothing was written.\n'])
  assert.match(stderr, new RegExp(`^${second}:3: "record" must be one of [^\n]*\n$`))
  const json = await run([second, '--json'])
  assert.deepEqual(
    [json.code, JSON.parse(json.stdout)],
    [1, { read: 3, written: 0, unchanged: 0, skipped: 0, erased: 0, rejected: 1 }],
  )
})

test('many bad lines: the first hundred, and nothing is read after them', async () => {
  const { code, stdout, stderr } = await feed('{}\n'.repeat(130))
  const lines = stderr.trimEnd().split('\n')
  assert.deepEqual([lines.length, lines[0]!.slice(0, 9), lines[100]], [101, 'stdin:1: ', 'The rest was not read.'])
  assert.deepEqual([code, stdout], [1, '100 lines of 100 are bad: nothing was written.\n'])
})

test('more bad lines than are shown: how many more', async () => {
  const { stderr } = await feed(textOf(Array.from({ length: 130 }, () => line.session({ profile_id: 'x' }))))
  assert.equal(stderr.trimEnd().split('\n')[100], '... and 30 more bad lines.')
})

test('compressed files are read, by their content and not by their name', async () => {
  for (const [name, bytes] of [
    ['good.ndjson.gz', gzipSync(good)],
    ['two-members', Buffer.concat([gzipSync(good), gzipSync(good)])],
    ['good.zst', zstdCompressSync(good)],
    ['two-frames', Buffer.concat([zstdCompressSync(good), zstdCompressSync(good)])],
  ] as const) {
    writeFileSync(join(folder, name), bytes)
    const { code, stdout } = await run([join(folder, name), '--json'])
    const read = name.startsWith('two-') ? 4 : 2
    assert.deepEqual([code, JSON.parse(stdout).read], [0, read], name)
  }
  assert.deepEqual((await tundish(['import', '--project', project.id, '-'], env, gzipSync(good))).code, 0)
})

const utf32 = (text: string) => Buffer.from(Uint32Array.from(text, (character) => character.codePointAt(0)!).buffer)

test('a damaged or unknown format is refused by name, and a tiny file is read', async () => {
  const refused: [string, Buffer, RegExp][] = [
    ['empty.gz', gzipSync('\n'.repeat(20_000_000)), /empty\.gz has more than 1048576 bytes of empty lines/],
    ['cut.gz', gzipSync(good.repeat(100)).subarray(0, 60), /cut\.gz is gzip, but damaged or incomplete/],
    ['good.zip', Buffer.from('PK\x03\x04....'), /good\.zip is zip: convert it to plain UTF-8 text or gzip\./],
    ...['', '\ufeff'].flatMap((mark): [string, Buffer, RegExp][] => [
      ['good.utf16le', Buffer.from(mark + good, 'utf16le'), /is UTF-16: convert it/],
      ['good.utf16be', Buffer.from(mark + good, 'utf16le').swap16(), /is UTF-16: convert it/],
      ['good.utf32le', utf32(mark + good), /is UTF-32: convert it/],
      ['good.utf32be', utf32(mark + good).swap32(), /is UTF-32: convert it/],
    ]),
  ]
  for (const [name, bytes, sentence] of refused) {
    writeFileSync(join(folder, name), bytes)
    const { code, stderr } = await run([join(folder, name)])
    assert.match(stderr, sentence)
    assert.equal(code, 1)
  }
  assert.equal((await run([file('empty.ndjson', ''), file('tiny.ndjson', '\n')])).code, 0)
})

test('rejected lines are never written through a link', async () => {
  const path = file('linked.ndjson', `${good}{}\n`)
  const target = file('target', 'untouched')
  symlinkSync(target, `${path}.rejected.ndjson`)
  const { code, stderr } = await run([path, '--skip-bad-lines'])
  assert.equal(code, 1)
  assert.match(stderr, /linked\.ndjson\.rejected\.ndjson is a link: the rejected lines cannot go there\./)
  assert.equal(readFileSync(target, 'utf8'), 'untouched')
  rmSync(`${path}.rejected.ndjson`)
  linkSync(target, `${path}.rejected.ndjson`)
  assert.equal((await run([path, '--skip-bad-lines'])).code, 0)
  assert.equal(readFileSync(target, 'utf8'), 'untouched')
})

test('bad lines that are skipped go to a file next to theirs, which only its owner can read', async () => {
  const path = file('mixed.ndjson', `${good}{"a" :1}\nx\n`)
  const saved = `${path}.rejected.ndjson`
  writeFileSync(saved, 'of an earlier run', { mode: 0o644 })
  const { code, stdout, stderr } = await run([path, file('fine.ndjson', good), '--skip-bad-lines'])
  assert.deepEqual([code, stdout], [0, `6 lines read: 0 written, 4 unchanged, 2 rejected (in ${saved}).\n`])
  assert.equal(stderr.split('\n').length, 3)
  assert.equal(readFileSync(saved, 'utf8'), '{"a" :1}\nx\n')
  assert.equal(statSync(saved).mode & 0o777, 0o600)
  assert.equal(existsSync(join(folder, 'fine.ndjson.rejected.ndjson')), false)
})

test('1 and one sentence when the bad lines do not fit on the disk; nothing is imported, and no file is left', async () => {
  const path = file('full.ndjson', `${good}${'x\n'.repeat(40_000)}`)
  const [node, args] = program('import', '--project', project.id, '--skip-bad-lines', path)
  const child = spawn('sh', ['-c', 'ulimit -f 64; trap "" XFSZ; exec "$@"', 'sh', node, ...args], { env })
  const [[code], stderr] = await Promise.all([once(child, 'exit'), text(child.stderr)])
  assert.deepEqual([code, stderr], [1, `${path}.rejected.ndjson cannot be used: EFBIG.\n`])
  assert.equal(existsSync(`${path}.rejected.ndjson`), false)
})

test('bad lines of standard input go to a file in the working folder', async () => {
  const child = spawn(...program('import', '--project', project.id, '--skip-bad-lines', '-'), {
    env,
    cwd: folder,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  child.stdin!.end(`${good}{}\n`)
  assert.deepEqual(await once(child, 'exit'), [0, null])
  assert.equal(readFileSync(join(folder, 'stdin.rejected.ndjson'), 'utf8'), '{}\n')
})

test('a dry run leaves no file', async () => {
  const path = file('dry.ndjson', `${good}{}\n`)
  const { code, stdout } = await run([path, '--skip-bad-lines', '--dry-run'])
  assert.deepEqual(
    [code, stdout],
    [0, '3 lines read: 0 written, 2 unchanged, 1 rejected. This was a dry run: nothing was stored.\n'],
  )
  assert.equal(existsSync(`${path}.rejected.ndjson`), false)
})

test('2 or 1 and one sentence for a refused import', async () => {
  const path = file('once.ndjson', good)
  mkdirSync(join(folder, 'folder'))
  const refused: [string[], number, RegExp][] = [
    [[join(folder, 'nothing')], 1, /nothing cannot be used: it does not exist \(ENOENT\)\.\n$/],
    [[join(folder, 'folder')], 1, /folder is a folder: name the files in it\.\n$/],
    [[path, path], 2, /once\.ndjson is named twice: name it once\.\n$/],
    [['--project', 'nowhere', path], 1, /^There is no project "nowhere"\.\n$/],
    [[], 2, /missing required argument/],
  ]
  for (const [args, code, sentence] of refused) {
    const outcome = await run(args)
    assert.equal(outcome.code, code)
    assert.match(outcome.stderr, sentence)
    assert.equal(outcome.stdout, '')
  }
})
