// One line of progress on a terminal; nothing in a pipe.

/** Shows the current step and the number of bytes. */
export interface Progress {
  at(what: string): void
  moved(bytes: number): void
  end(): void
}

const PAUSE_MS = 250
const MIB = 1024 * 1024

export function showProgress(terminal: { isTTY?: boolean; write(text: string): unknown }): Progress {
  let what = ''
  let bytes = 0
  let shownAt = 0
  function show(): void {
    if (!terminal.isTTY || performance.now() - shownAt < PAUSE_MS) return
    shownAt = performance.now()
    terminal.write(`\r\x1b[K${what} · ${(bytes / MIB).toFixed(1)} MiB`)
  }
  return {
    at(next) {
      what = next
      show()
    },
    moved(more) {
      bytes += more
      show()
    },
    end() {
      if (terminal.isTTY && shownAt > 0) terminal.write('\r\x1b[K')
    },
  }
}
