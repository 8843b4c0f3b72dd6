// A line on a terminal that shows how far an operator's command is.

const SHOWN_EVERY_MS = 500
const ERASE_LINE = '\r\x1b[K'

/** The progress of a command. */
export interface ProgressLine {
  /** Shows the number of completed items, at most twice per second. */
  readonly update: (count: number) => void
  /** Writes a message on its own line. */
  readonly warn: (message: string) => void
  /** Shows the last number, and ends the line. */
  readonly complete: () => void
}

/** Creates a line for `items`, such as `rows`. If `isShown` is false, only messages are written. */
export function createProgressLine(
  stream: NodeJS.WriteStream,
  { items, isShown }: { readonly items: string; readonly isShown: boolean },
): ProgressLine {
  let isOpen = false
  let count = 0
  let shownMs = -Infinity
  const show = () => {
    stream.write(`${ERASE_LINE}${count.toLocaleString('en')} ${items}`)
  }
  return {
    update(completed) {
      count = completed
      if (!isShown || performance.now() - shownMs < SHOWN_EVERY_MS) return
      shownMs = performance.now()
      isOpen = true
      show()
    },
    warn(message) {
      stream.write(`${isShown ? ERASE_LINE : ''}${message}\n`)
    },
    complete() {
      if (!isOpen) return
      show()
      stream.write('\n')
      isOpen = false
    },
  }
}
