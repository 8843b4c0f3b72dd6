// Bounds accesses to files on a disk that may hang, such as NFS. A timeout does not abort an
// access, which occupies one of the four threads of Node.js's pool until the disk responds; DNS
// lookups need these threads, too.
import { within } from '../resilience/deadline.ts'

/** The result of an access; rejects with `timeoutError` at its deadline. */
type BoundedAccess = <T>(access: () => Promise<T>, timeoutError: () => Error) => Promise<T>

/**
 * Runs one access at a time, each for at most `msMax` milliseconds. After a timeout, the next call
 * starts its access only once the timed-out access has completed, or times out as well.
 */
export function createBoundedAccess(msMax: number): BoundedAccess {
  let running: Promise<void> | undefined
  const complete = () => {
    running = undefined
  }
  return async (access, timeoutError) => {
    while (running !== undefined) await within(msMax, running, timeoutError)
    const result = access()
    running = result.then(complete, complete)
    return within(msMax, result, timeoutError)
  }
}
