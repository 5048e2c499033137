// Removes keys from messages, ours and those of payment providers: a caller may send one anywhere, and a message that repeats it ends up in logs
// and tickets.

// A prefix of a key followed by at least eight characters: also finds a truncated or mistyped key. What precedes the prefix
// does not matter: in a JSON body a line break before a key is `\\n`, which ends in a letter. A path that is not UTF-8 stays
// percent-encoded.
const SECRET = /(secret|operator|whsec|[sr]k_(?:live|test))(?:_|%5[Ff])[A-Za-z0-9+/_=%-]{8,}/g

/** The text with everything that looks like a key reduced to its prefix: `secret_…`. */
export function hideSecrets(text: string): string {
  return /_|%5[Ff]/.test(text) ? text.replace(SECRET, '$1_…') : text
}
