// What a caught value reports, for logs and operators.

/** The message of an error, or any other thrown value as a string. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
