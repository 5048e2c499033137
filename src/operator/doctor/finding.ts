// A finding: the result of one of the doctor's checks.

/** `failed` needs action, `warning` needs attention; `fix` says what to do, as a sentence or a command. */
export interface Finding {
  check: string
  level: 'ok' | 'warning' | 'failed'
  message: string
  fix?: string
  /** What it belongs to; neither: the installation. */
  organization_id?: string
  project_id?: string
}

/** The finding as one of an organization or a project. */
export const ofTenant = (tenant: { organization_id: string } | { project_id: string }, finding: Finding): Finding => ({
  ...finding,
  ...tenant,
})

export function ok(check: string, message: string): Finding {
  return { check, level: 'ok', message }
}

export function warning(check: string, message: string, fix: string): Finding {
  return { check, level: 'warning', message, fix }
}

export function failed(check: string, message: string, fix: string): Finding {
  return { check, level: 'failed', message, fix }
}
