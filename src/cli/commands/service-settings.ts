// The settings of a program that a service manager starts: with wrong ones another start is useless.
import { type Config, readConfig } from '../../config.ts'
import { UsageError } from '../../lib/errors.ts'

/** EX_CONFIG of sysexits(3): the systemd unit does not start the program again after it. What may pass by itself has 2 or 1. */
const EXIT_SETTINGS = 78

export function readServiceSettings(): Config {
  try {
    return readConfig(process.env)
  } catch (error) {
    if (error instanceof UsageError) error.exitCode = EXIT_SETTINGS
    throw error
  }
}
