// Opens the dependencies of a test one after the other. If one fails to open, closes those that are
// open already: a server that keeps running would keep the test process from exiting.

/** An open dependency. */
export interface Closing {
  readonly close: () => Promise<void>
}

/** Registers the function that closes a dependency. */
export type OnClose = (close: () => unknown) => void

/** Opens dependencies one after the other; `close` closes them in reverse order. */
export async function openDependencies<T extends object>(
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
