// Garbage that minor collections do not free. A former table of a `Map` or a `Set` keeps its
// entries alive, and refers to the next table: if the first is in the old generation, all stay.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const CALLS = 1000
const CALLS_PER_COLLECTION = 50

/** The bytes in the heap that each call leaves behind until the next major garbage collection. */
export async function bytesLeftPerCall(call: () => Promise<unknown>): Promise<number> {
  setFlagsFromString('--no-allocation-site-pretenuring') // as in every service
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as NodeJS.GCFunction
  setFlagsFromString('--no-expose-gc')
  const run = async () => {
    for (let done = 0; done < CALLS; done++) {
      await call()
      if (done % CALLS_PER_COLLECTION === 0) collect({ type: 'minor', execution: 'sync' })
    }
  }
  await run()
  collect({ type: 'major', execution: 'sync' }) // moves what is in use to the old generation
  const before = process.memoryUsage().heapUsed
  await run()
  collect({ type: 'minor', execution: 'sync' })
  collect({ type: 'minor', execution: 'sync' }) // moves what the first one has copied
  return (process.memoryUsage().heapUsed - before) / CALLS
}
