// Opens what a contract's tests use, and closes it again: also what was opened already where the
// rest does not open, for a server that is left would keep the tests from ending.
import { afterAll, beforeAll } from '@jest/globals'

/** Something open. */
interface Closing {
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

/** Opens one member of a contract's list for the tests around; gives what gives it to them. */
export function openCase<T extends Closing>(given: {
  readonly name: string
  readonly open: () => Promise<T>
}): () => T {
  let opened: T | undefined
  beforeAll(async () => {
    opened = await given.open()
  })
  afterAll(() => opened?.close())
  return () => {
    if (opened === undefined) throw new Error(`${given.name} did not open`)
    return opened
  }
}
