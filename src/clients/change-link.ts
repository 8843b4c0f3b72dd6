// Disables or enables one link of many through the admin API, with retries, at a bounded rate;
// counts what was done, and prints each link that was changed.
import type { Writable } from 'node:stream'
import { OperatorError } from '../process/role.ts'
import { monotonicMs, pause as defaultPause } from '../resilience/deadline.ts'
import { type AdminTarget, callAdminApi, ProblemError } from './admin-client.ts'
import type { ListedCode } from './code-list.ts'
import { linkShape } from './link-shape.ts'
import { createRetry, type Retry, type RetryOptions } from './retry-unavailable.ts'
import type { ListedLink } from './scan-links.ts'
import { STOPPED } from './until-aborted.ts'
import { writeLines } from './write-output.ts'

/** The states before and after each change. */
const transitions = {
  disable: { from: 'active', to: 'disabled' },
  enable: { from: 'disabled', to: 'active' },
} as const

/**
 * Links by what was done. `already`: was in the wanted state; `skipped`: expired or deleted;
 * `failed`: all attempts failed.
 */
export interface ChangeCounts {
  scanned: number
  changed: number
  already: number
  skipped: number
  notFound: number
  failed: number
}

/** How to change links. */
export interface ChangeOptions extends RetryOptions {
  readonly target: AdminTarget
  readonly verb: keyof typeof transitions
  /** Nothing is changed; links that would be changed are counted and printed. */
  readonly isDryRun: boolean
  /** The maximum number of links of a scan that are changed, or codes of a list, per second. */
  readonly linksPerSecond: number
  /** Receives each changed link as a line of JSON; `undefined`: nothing is written. */
  readonly output: Writable | undefined
  /** The counts so far, which the run updates. */
  readonly counts: ChangeCounts
  /** Called when `counts` has changed. */
  readonly onProgress: () => void
}

/** Changes links. */
interface Changer {
  /** Changes a link that was just read, unless it is already in the state. */
  readonly change: (link: ListedLink) => Promise<void>
  /** Changes the link with a code; if it is already in the state, confirms this. */
  readonly changeCode: (code: ListedCode) => Promise<void>
  /** The codes of changes that were requested, but neither confirmed nor rejected. */
  readonly unconfirmed: () => readonly string[]
}

/** Creates a changer for an API that was reached. Its changes throw OperatorError. */
export function createChanger(options: ChangeOptions): Changer {
  const { verb, isDryRun, output, counts } = options
  const { from, to } = transitions[verb]
  const api = createLinkApi(options)
  const wait = createPacer(options)
  /** Changes a link whose state was read, and counts it by this state. */
  const apply = async (read: ListedLink) => {
    const [link, state] = isDryRun ? [read, read.state] : [await api.post(read.short_code), to]
    if (link === undefined) counts.notFound++
    else if (link.state !== state) counts.skipped++
    else if (read.state === to) counts.already++
    else {
      counts.changed++
      if (output !== undefined) await writeLines(output, `${JSON.stringify(link)}\n`)
    }
  }
  return {
    async change(link) {
      if (link.state === to) counts.already++
      else if (link.state !== from) counts.skipped++
      else {
        if (!isDryRun) await wait()
        await apply(link)
      }
    },
    async changeCode({ code }) {
      await wait()
      const link = await api.get(code)
      if (link === undefined) counts.notFound++
      else if (link.state !== from && link.state !== to) counts.skipped++
      // The store may already have the state, even if the caches have not confirmed it.
      else await apply(link)
    },
    unconfirmed: api.unconfirmed,
  }
}

function createLinkApi(options: ChangeOptions) {
  const { target, verb, signal } = options
  // The scan, or the check before a list, has reached the API.
  const retry = createRetry({ ...options, isReached: true })
  const unconfirmed = new Set<string>()
  const call = (method: string, path: string) => {
    if (signal.aborted) throw new OperatorError(STOPPED)
    return callAdminApi(target, { method, path: `/admin/links/${path}` }, linkShape)
  }
  return {
    get: (code: string) => linkOrUndefined(retry, () => call('GET', code)),
    async post(code: string): Promise<ListedLink | undefined> {
      let attempts = 0
      try {
        const link = await linkOrUndefined(retry, () => {
          const response = call('POST', `${code}/${verb}`)
          unconfirmed.add(code)
          attempts++
          return response
        })
        unconfirmed.delete(code)
        return link
      } catch (error) {
        // A rejected attempt changes nothing, but an earlier attempt may have changed the link.
        if (error instanceof ProblemError && attempts === 1) unconfirmed.delete(code)
        throw error
      }
    },
    unconfirmed: () => [...unconfirmed],
  }
}

/** The link that `call` returns; `undefined` for 404. */
async function linkOrUndefined(
  retry: Retry,
  call: () => Promise<ListedLink>,
): Promise<ListedLink | undefined> {
  try {
    return await retry(call)
  } catch (error) {
    if (error instanceof ProblemError && error.status === 404) return undefined
    throw error
  }
}

/** Creates the function that waits for the next change, so that changes are evenly spread. */
function createPacer(options: ChangeOptions): () => Promise<void> {
  const { linksPerSecond, signal, pause = defaultPause } = options
  let dueMs = -Infinity
  return async () => {
    const nowMs = monotonicMs()
    dueMs = Math.max(dueMs + 1000 / linksPerSecond, nowMs)
    if (dueMs - nowMs >= 1) await pause(dueMs - nowMs, signal)
  }
}
