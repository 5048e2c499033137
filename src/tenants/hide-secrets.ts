// Keeps keys out of sentences: a caller may put one anywhere, and an error that repeats it ends up in logs and tickets.

// Anything with a prefix of our keys and some length: also a key that was cut off or mistyped.
const SECRET = /(?<![A-Za-z0-9])(secret|operator|whsec)_[A-Za-z0-9+/_=-]{8,}/g

/** The text with everything that looks like one of our keys cut down to its prefix: `secret_…`. */
export function hideSecrets(text: string): string {
  return text.includes('_') ? text.replace(SECRET, '$1_…') : text
}
