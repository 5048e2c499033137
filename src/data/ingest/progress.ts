// How far an import has come.

export interface Progress {
  step: 'reading' | 'checking' | 'waiting' | 'writing'
  bytes: number
  /** Lines read. */
  lines: number
  /** Rows written, not committed yet. */
  rows: number
}

/** Returns a function that takes what has changed. */
export function startProgress(onProgress?: (progress: Progress) => void): (change: Partial<Progress>) => void {
  let progress: Progress = { step: 'reading', bytes: 0, lines: 0, rows: 0 }
  return (change) => {
    progress = { ...progress, ...change }
    onProgress?.(progress)
  }
}
