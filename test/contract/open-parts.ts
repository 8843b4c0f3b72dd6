// Opens what tests use part by part, and closes it again: also what was opened already where the
// rest does not open, for a server that is left would keep the tests from ending. Knows no test.

/** Something open. */
export interface Closing {
  readonly close: () => Promise<void>
}

/** Notes what closes a part that was just opened. */
export type OnClose = (close: () => unknown) => void

/** Opens parts one after the other; `close` closes them from the last to the first. */
export async function openParts<T extends object>(
  open: (onClose: OnClose) => Promise<T>,
): Promise<T & Closing> {
  const closing: (() => unknown)[] = []
  const close = async () => {
    for (const closeOne of closing.splice(0).reverse()) await closeOne()
  }
  try {
    const opened = await open((closeOne) => closing.push(closeOne))
    return { ...opened, close }
  } catch (error) {
    await close()
    throw error
  }
}
