// The error of a command line that is not valid.

/** Invalid arguments; run-program.ts prints the message and exits with code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
