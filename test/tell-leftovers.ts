// A reporter of jest that ends a run which cannot end by itself: a server or process that a test
// has left open is told, and fails the run, instead of holding it until its time is up.

/** What ends in order does so within it. */
const END_MS_MAX = 30_000
const SHOWN_MAX = 20

/** Jest's reporter. */
export default class TellLeftovers {
  onRunComplete(): void {
    const late = setTimeout(() => {
      const shown = leftovers().slice(0, SHOWN_MAX).join('\n  ')
      process.stderr.write(`FAILED jest cannot end, for tests have left open:\n  ${shown}\n`)
      process.exit(1)
    }, END_MS_MAX)
    late.unref()
  }
}

interface Handle {
  readonly constructor: { readonly name: string }
  readonly pid?: number
  readonly spawnargs?: readonly string[]
  readonly localPort?: number
  readonly remotePort?: number
  address?(): unknown
}

/** What keeps this process alive, a line each. */
function leftovers(): string[] {
  const { _getActiveHandles: handles } = process as unknown as {
    _getActiveHandles?: () => readonly Handle[]
  }
  const named = handles?.call(process).map((handle) => {
    const { pid, spawnargs, localPort, remotePort } = handle
    const at = typeof handle.address === 'function' ? handle.address() : undefined
    const facts = JSON.stringify({ pid, spawnargs, localPort, remotePort, at })
    return `${handle.constructor.name} ${facts.slice(0, 500)}`
  })
  return [...(named ?? []), process.getActiveResourcesInfo().join(' ')]
}
