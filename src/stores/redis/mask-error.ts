// Removes credentials from the driver's errors.

/** The arguments that Redis repeats in its error for an unknown command, such as a renamed AUTH. */
const ARGUMENTS = /,? with args [a-z]+ with:[^\n]*/g

/**
 * Removes the arguments from an error's message, and the command that the driver attaches to the
 * error: an AUTH command contains the password. Changes and returns the error.
 */
export function maskError(error: Error & { command?: unknown; lastNodeError?: unknown }): Error {
  delete error.command
  const { stack } = error
  error.message = error.message.replaceAll(ARGUMENTS, '')
  if (stack !== undefined) error.stack = stack.replaceAll(ARGUMENTS, '')
  if (error.lastNodeError instanceof Error) maskError(error.lastNodeError)
  return error
}
