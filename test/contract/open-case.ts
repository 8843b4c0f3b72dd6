// Opens a store for the tests of a contract, and closes it after them.
import { afterAll, beforeAll } from '@jest/globals'
import type { Closing } from './open-dependencies.ts'

/** Opens a store for the enclosing tests; returns the function by which they get it. */
export function openCase<T extends Closing>(testCase: {
  readonly name: string
  readonly open: () => Promise<T>
}): () => T {
  let opened: T | undefined
  beforeAll(async () => {
    opened = await testCase.open()
  })
  afterAll(() => opened?.close())
  return () => {
    if (opened === undefined) throw new Error(`${testCase.name} is not open`)
    return opened
  }
}
