// Errors of file operations.

/** The code of a system error, such as `ENOENT`. */
export function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code
}

/** The result of `access`, or `fallback` if the file does not exist. */
export async function orIfMissing<T>(access: Promise<T>, fallback: T): Promise<T> {
  try {
    return await access
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return fallback
    throw error
  }
}
