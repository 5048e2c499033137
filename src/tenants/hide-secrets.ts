// Removes keys from messages: a caller may send one anywhere, and an error that repeats it ends up in logs and tickets.

// Anything with a prefix of our keys and some length: also a truncated or mistyped key. Whatever precedes it: in the JSON of a
// body, a line break before a key is a backslash and a letter.
const SECRET = /(secret|operator|whsec)_[A-Za-z0-9+/_=-]{8,}/g

/** The text with everything that looks like one of our keys reduced to its prefix: `secret_…`. */
export function hideSecrets(text: string): string {
  return text.includes('_') ? text.replace(SECRET, '$1_…') : text
}
