// Opens a member of a contract's list for its tests, and closes it after them.
import { afterAll, beforeAll } from '@jest/globals'
import type { Closing } from './open-parts.ts'

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
