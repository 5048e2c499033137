// The life of the embedded PostgreSQL: made, shared, taken over, started again, stopped.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../support/time.ts'
import { clusterOf, firstValue, hold, isStopped, newFolder, open, pidOf, ROOT } from './embedded.ts'

test('the first start makes the database, and the second finds what was written', async () => {
  const dataDir = newFolder()
  const first = await open(dataDir)
  await firstValue(first.url, 'create table kept as select 42 as n')
  await first.close()
  await first.close()
  assert.ok(isStopped(dataDir))

  const second = await open(dataDir)
  assert.equal(await firstValue(second.url, 'select n from kept'), '42')
  assert.equal(second.url, first.url)
  assert.equal(await firstValue(second.url, `select datlocale from pg_database where datname = 'tundish'`), 'C.UTF-8')
  await second.close()
})

test('it listens on a socket in a private folder only, and asks for the password', async () => {
  const dataDir = newFolder()
  const { url, connection, close } = await open(dataDir)
  assert.equal(await firstValue(url, 'show listen_addresses'), '')
  assert.equal(connection.host, join(dataDir, 'postgres/run'))
  assert.equal(statSync(connection.host).mode & 0o777, 0o700)
  assert.equal(statSync(join(dataDir, 'postgres.password')).mode & 0o777, 0o600)
  assert.equal(statSync(join(dataDir, 'postgres.log')).mode & 0o777, 0o600)
  await assert.rejects(firstValue(url.replace(connection.password, 'guess'), 'select 1'), { code: '28P01' })
  const commandLine = await firstValue(url, `select pg_read_file('postmaster.opts')`)
  assert.ok(!`${commandLine}${readFileSync(join(dataDir, 'postgres.log'))}`.includes(connection.password))
  await close()
})

test('what a failing statement says does not reach the log', async () => {
  const dataDir = newFolder()
  const { url, close } = await open(dataDir)
  await assert.rejects(firstValue(url, `select 'ada@example.com'::int`))
  await firstValue(url, 'create table people (email text primary key)')
  await assert.rejects(firstValue(url, `insert into people values ('ada@example.com'), ('ada@example.com')`))
  await close()
  const log = readFileSync(join(dataDir, 'postgres.log'), 'utf8')
  assert.match(log, /ready to accept connections/)
  assert.doesNotMatch(log, /ada@example/)
})

test('two programs share one server, and the last to leave stops it', async () => {
  const dataDir = newFolder()
  const other = hold(dataDir)
  const { url } = await other.next()
  const ours = await open(dataDir)
  assert.equal(ours.url, url)
  await other.leave()
  assert.equal(await firstValue(ours.url, 'select 1'), '1')
  await ours.close()
  assert.ok(isStopped(dataDir))
})

test('a process that starts while others start or end finds a server', async () => {
  const dataDir = newFolder()
  const comeAndGo = async () => {
    for (let round = 0; round < 8; round++) {
      const embedded = await open(dataDir)
      assert.equal(await firstValue(embedded.url, 'select 1'), '1')
      await embedded.close()
    }
  }
  await Promise.all([comeAndGo(), comeAndGo(), comeAndGo()])
  assert.ok(isStopped(dataDir))
})

test('a server orphaned by kill -9 is taken over, and stopped by the last to leave', async () => {
  const dataDir = newFolder()
  const killed = hold(dataDir)
  await killed.next()
  const pid = pidOf(dataDir)
  killed.program.kill('SIGKILL')
  await once(killed.program, 'exit')

  const { url, close } = await open(dataDir)
  assert.equal(pidOf(dataDir), pid)
  assert.equal(await firstValue(url, 'select 1'), '1')
  await close()
  assert.ok(isStopped(dataDir))
})

test('a server that dies under a program is started again, with what was committed', async () => {
  const dataDir = newFolder()
  const { url, close } = await open(dataDir, { throwaway: false })
  await firstValue(url, 'create table kept as select 42 as n')
  const pid = pidOf(dataDir)
  process.kill(pid, 'SIGKILL')
  let response: string | undefined
  await until('the next server', async () => {
    response = await firstValue(url, 'select n from kept').catch(() => undefined)
    return response !== undefined
  })
  assert.equal(response, '42')
  await close()
  assert.ok(isStopped(dataDir))
})

test('a server that stops because one of its processes died is started again', async () => {
  const dataDir = newFolder()
  const { url, close } = await open(dataDir)
  const pid = pidOf(dataDir)
  process.kill(
    Number(await firstValue(url, `select pid from pg_stat_activity where backend_type = 'walwriter'`)),
    'SIGKILL',
  )
  // PostgreSQL does not restart itself: on a full disk it can then refuse connections until it is stopped.
  await until('the next server', async () => {
    const value = await firstValue(url, 'select 1').catch(() => undefined)
    return value === '1' && pidOf(dataDir) !== pid
  })
  await close()
  assert.ok(isStopped(dataDir))
})

test('lock files whose process id belongs to another program by now do not hinder the start', async () => {
  const dataDir = newFolder()
  await (await open(dataDir)).close()
  const { uid, gid } = statSync(clusterOf(dataDir))
  const other = spawn('sleep', ['60'], { ...(ROOT ? { uid, gid } : {}), cwd: '/' })
  const socketFolder = join(dataDir, 'postgres/run')
  for (const file of [join(clusterOf(dataDir), 'postmaster.pid'), join(socketFolder, '.s.PGSQL.5432.lock')]) {
    writeFileSync(file, `${other.pid}\n${clusterOf(dataDir)}\n1\n5432\n${socketFolder}\n\n`)
    chownSync(file, uid, gid)
  }
  const { url, close } = await open(dataDir)
  assert.equal(await firstValue(url, 'select 1'), '1')
  await close()
  assert.equal(other.exitCode, null)
  other.kill()
})

test('lock files whose content was lost with the power do not hinder the start', async () => {
  const dataDir = newFolder()
  await (await open(dataDir)).close()
  const future = Date.now() / 1000 + 3600
  for (const [content, time] of [
    ['', 0],
    ['\0'.repeat(80), 0],
    ['', future],
  ] as const) {
    for (const file of ['data/postmaster.pid', 'run/.s.PGSQL.5432.lock'].map((name) =>
      join(dataDir, 'postgres', name),
    )) {
      writeFileSync(file, content, { mode: 0o600 })
      const { uid, gid } = statSync(clusterOf(dataDir))
      chownSync(file, uid, gid)
      utimesSync(file, time, time)
    }
    const { url, close } = await open(dataDir)
    assert.equal(await firstValue(url, 'select 1'), '1')
    await close()
  }
})

test('Ctrl-C reaches the program and not its server', async () => {
  const dataDir = newFolder()
  const { program, next, leave } = hold(dataDir)
  await next()
  const pid = pidOf(dataDir)
  process.kill(-(program.pid ?? 0), 'SIGINT')
  assert.deepEqual(await next(), { afterSignal: 1 })
  assert.equal(pidOf(dataDir), pid)
  await leave()
  assert.ok(isStopped(dataDir))
})

test('a start that is given up leaves neither a draft nor a server', async () => {
  for (const file of ['postgres/data/PG_VERSION', 'postgres/data/postmaster.pid']) {
    const dataDir = newFolder()
    const stopping = new AbortController()
    const reason = new Error('enough')
    const opening = open(dataDir, { signal: stopping.signal })
    while (!existsSync(join(dataDir, file))) await sleep(1)
    stopping.abort(reason)
    await opening.then(
      // It may have been a moment too late.
      (embedded) => embedded.close(),
      (error) => assert.equal(error, reason),
    )
    assert.ok(isStopped(dataDir))
    assert.deepEqual(
      readdirSync(join(dataDir, 'postgres')).filter((name) => name.startsWith('draft')),
      [],
    )
  }
})
