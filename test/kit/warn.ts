// Reports an unexpected error of a test as a warning of the process.

/** Reports an error. */
export function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error))
}
