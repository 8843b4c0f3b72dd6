// The result type that all suites of the conformance run return.

/** Whether one thing of the reference holds for ours. */
export interface Outcome {
  readonly name: string
  readonly hasPassed: boolean
  /** Facts, or why it failed; may have several lines. */
  readonly detail: string
}
