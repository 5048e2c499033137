// The security headers of HTML pages.

/** The headers of a page that may use only the sources in `policy`, by directive. No other page may frame it. */
export function pageHeaders(policy: Record<string, string>) {
  const { 'form-action': formAction = "'none'", ...sources } = policy
  const directives = {
    'default-src': "'none'",
    ...sources,
    'form-action': formAction,
    'base-uri': "'none'",
    'frame-ancestors': "'none'",
  }
  return {
    'content-security-policy': Object.entries(directives)
      .map(([name, value]) => `${name} ${value}`)
      .join('; '),
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
  }
}
