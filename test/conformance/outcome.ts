// The result type that all suites of the conformance run return.

/** The result of one conformance check. */
export interface Outcome {
  readonly name: string
  readonly hasPassed: boolean
  /** The facts, or the reason of the failure; may have several lines. */
  readonly detail: string
}
