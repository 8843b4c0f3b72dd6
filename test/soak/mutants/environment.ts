// Jest's environment for the mutation tests: the first test that fails detects the mutant, so that
// the other tests of its file are skipped.
import { TestEnvironment } from 'jest-environment-node'

/** What is read of an event of jest-circus. */
interface TestEvent {
  readonly name: string
  readonly test?: { mode?: string | null; readonly errors: readonly unknown[] }
}

/** An environment of Jest. */
export default class MutantsEnvironment extends TestEnvironment {
  #hasFailed = false

  handleTestEvent = ({ name, test }: TestEvent): void => {
    if (test === undefined) return
    if (name === 'test_start' && this.#hasFailed) test.mode = 'skip'
    if (name === 'test_done' && test.errors.length > 0) this.#hasFailed = true
  }
}
