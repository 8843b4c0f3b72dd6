// Sends batches of rows to the admin API. Rows that the service has not confirmed are retried, with
// growing pauses, for a bounded time; a retry of an imported row has no effect.
import { OperatorError } from '../../process/role.ts'
import { type Clock, monotonicMs, pause as wait, type Pause } from '../../resilience/deadline.ts'
import { createBackOff, fromHalf } from '../../resilience/retry-until-deadline.ts'
import { importResponseShape, type ImportResult } from '../../transfer/import-result.ts'
import type { LinkRow } from '../../transfer/link-row.ts'
import { type AdminTarget, callAdminApi, UnavailableError } from '../admin-client.ts'

/** How to send rows. */
export interface SendOptions {
  readonly target: AdminTarget
  readonly signal: AbortSignal
  /** Called before rows are retried. */
  readonly onRetry: (cause: string) => void
  /** Waits before a retry; replaced in tests. */
  readonly pause?: Pause
  readonly monotonicMs?: Clock
}

/** Sends rows; resolves to their results, in order. Throws OperatorError. */
export type RowSender = (rows: readonly LinkRow[]) => Promise<readonly ImportResult[]>

const PAUSES = { firstMs: 250, maxMs: 8000 }
/** How long a batch is retried; shorter before the first results: ADMIN_URL may be wrong. */
const RETRY_MS_MAX = 60_000
const FIRST_RETRY_MS_MAX = 5000

/** Creates the function that sends rows. */
export function createRowSender(options: SendOptions): RowSender {
  const { target, signal, pause = wait, monotonicMs: nowMs = monotonicMs } = options
  let hasResults = false
  const sendOnce = async (rows: readonly LinkRow[]) => {
    const ndjson = rows.map((row) => `${JSON.stringify(row)}\n`).join('')
    const request = { method: 'POST', path: '/admin/links/import', ndjson }
    const { results } = await callAdminApi(target, request, importResponseShape)
    if (results.length === rows.length) return results
    throw new OperatorError(`${request.path} returned ${results.length} of ${rows.length} results`)
  }
  return async (rows) => {
    const results = new Map<number, ImportResult>()
    const backOff = createBackOff({ signal, pause, pauses: PAUSES, random: fromHalf })
    const startMs = nowMs()
    let pending = rows.map((_, i) => i)
    for (;;) {
      const sent = pending.flatMap((i) => rows[i] ?? [])
      const response = await resultOrUnavailable(sendOnce(sent))
      if (!(response instanceof UnavailableError)) {
        hasResults = true
        for (const [at, result] of response.entries()) results.set(pending[at] ?? 0, result)
        pending = pending.filter((i) => results.get(i)?.result === 'failed')
        if (pending.length === 0) break
      }
      const cause = causeOf(response)
      const isLast = nowMs() - startMs >= (hasResults ? RETRY_MS_MAX : FIRST_RETRY_MS_MAX)
      if (isLast || signal.aborted) {
        const isUnavailable = response instanceof UnavailableError || signal.aborted
        if (isUnavailable || pending.length === rows.length) throw cause // the next run sends them
        break // the service confirms other rows: only these fail
      }
      options.onRetry(cause.message)
      await backOff()
    }
    return rows.map((_, i) => results.get(i)).filter((result) => result !== undefined)
  }
}

async function resultOrUnavailable<T>(call: Promise<T>): Promise<T | UnavailableError> {
  try {
    return await call
  } catch (error) {
    if (error instanceof UnavailableError) return error
    throw error
  }
}

function causeOf(response: readonly ImportResult[] | UnavailableError): OperatorError {
  if (response instanceof UnavailableError) return response
  const detail = response.find(({ result }) => result === 'failed')?.detail ?? 'no detail'
  return new OperatorError(`rows were not confirmed: ${detail}`)
}
