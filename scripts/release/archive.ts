// The archive of a platform: unpack and run. Two builds of a commit have the same bytes.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { rename } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import type { Source } from './source.ts'

/** Writes `folder` as the top folder `name` of a .tar.gz with times, owners and order that depend on the commit alone. */
export async function pack(folder: string, name: string, file: string, { epoch }: Source): Promise<void> {
  const tar = spawn(
    'tar',
    [
      'c',
      '--format=posix',
      '--sort=name',
      `--mtime=@${epoch}`,
      '--owner=0',
      '--group=0',
      '--numeric-owner',
      // Extended headers would have the time and the process of this run.
      '--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime',
      '--mode=u+rw,go+rX,go-w',
      `--transform=s,^[.],${name},S`,
      '-C',
      folder,
      '.',
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const ended = once(tar, 'close') as Promise<[number | null]>
  await pipeline(tar.stdout, createGzip({ level: 9 }), createWriteStream(`${file}.part`))
  const [code] = await ended
  if (code !== 0) throw new Error(`tar ended with ${code}.`)
  await rename(`${file}.part`, file)
}
