// tundish doctor: checks this installation, and prints how to fix each finding.
import type { Command } from 'commander'
import type { Config } from '../../config.ts'
import { Refusal } from '../../lib/errors.ts'
import { examine, type Finding } from '../../operator/doctor/doctor.ts'
import { abortedWhenStopped, withSettings } from './command.ts'

const WIDTH = 12

export function register(program: Command): void {
  const doctor = program
    .command('doctor')
    .description('Check the installation, and say how to fix problems')
    .option('--fix-counts', 'First correct counters that differ from a recount')
  withSettings(doctor, async (config: Config, options: unknown) => {
    const { fixCounts } = options as { fixCounts?: boolean }
    // With DATABASE_URL there is no embedded server to stop: a signal ends it at once.
    const signal = config.databaseUrl
      ? undefined
      : abortedWhenStopped(new Refusal('Stopped: not everything was checked.'))
    const findings = await examine(config, { fix: fixCounts === true, signal })
    const isSound = findings.every(({ level }) => level !== 'failed')
    return { json: { ok: isSound, findings }, text: findings.map(line).join('\n'), exitCode: isSound ? 0 : 1 }
  })
}

function line({ check, level, message, fix }: Finding): string {
  const mark = { ok: 'ok', warning: 'warning', failed: 'FAILED' }[level]
  const indent = ' '.repeat(2 * WIDTH)
  return `${mark.padEnd(WIDTH)}${check.padEnd(WIDTH)}${message}${fix ? `\n${indent}→ ${fix}` : ''}`
}
