// Removes credentials from the driver's errors.

/** The arguments that Redis repeats in its error for an unknown command, such as a renamed AUTH. */
const ARGUMENTS = /,? with args [a-z]+ with:[^\n]*/g

/**
 * Removes the command that the driver attaches to an error, because that of AUTH contains the
 * password, and the arguments in its message. Changes and returns the error.
 */
export function maskError(error: Error & { command?: unknown; lastNodeError?: unknown }): Error {
  delete error.command
  const { stack } = error
  error.message = error.message.replaceAll(ARGUMENTS, '')
  if (stack !== undefined) error.stack = stack.replaceAll(ARGUMENTS, '')
  if (error.lastNodeError instanceof Error) maskError(error.lastNodeError)
  return error
}
