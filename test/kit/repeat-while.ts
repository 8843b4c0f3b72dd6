// Calls that run while something else changes.

/** Repeats `call`, one at a time, until `change` has completed. Returns the number of calls. */
export async function repeatWhile(
  call: () => Promise<unknown>,
  change: () => Promise<unknown>,
): Promise<number> {
  const changed = new AbortController()
  let calls = 0
  const calling = (async () => {
    for (; !changed.signal.aborted; calls++) await call()
  })()
  calling.catch(() => undefined) // awaited below
  try {
    await change()
  } finally {
    changed.abort()
    await calling
  }
  return calls
}
