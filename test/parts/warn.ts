// What tests do with an error that nobody expects: it shows, as a warning of the process.

/** Shows an error. */
export function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error))
}
