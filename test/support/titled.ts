// The title of a test that may be skipped, with the reason.
export const titled = (title: string, why: string | undefined) => (why ? `${title} (skipped: ${why})` : title)
