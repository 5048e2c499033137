// The title of a test that may be skipped, with the reason.
import { existsSync } from 'node:fs'

export const titled = (title: string, why: string | undefined) => (why ? `${title} (skipped: ${why})` : title)

/** Why a test that needs this file cannot run here, or undefined. */
export const without = (path: string) => (existsSync(path) ? undefined : `there is no ${path}`)
