// What the parts of the conformance run say of what they tried.

/** Whether one thing of the reference holds for ours. */
export interface Outcome {
  readonly name: string
  readonly hasPassed: boolean
  /** Facts, or why it failed; may have several lines. */
  readonly detail: string
}
