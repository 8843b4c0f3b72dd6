// Sends reports to the server of a stream as requests of a type of their own: only to a server that
// identifies itself as Curtail's controller, because others may reject the type.
import { CONTROL_PLANE, LEAVE_TYPE_URL, writeDiscoveryRequest } from '../../protobuf/discovery.ts'
import { monotonicMs } from '../../resilience/deadline.ts'

/** What to report. */
export interface Reports {
  readonly typeUrl: string
  /** Takes what is reported next, in less than 64 KiB; empty: nothing. */
  readonly take: () => readonly string[]
}

/** Sends reports on one stream after another. */
export interface ReportSender {
  /** Must be called with the identifier in each response, and how to send on its stream. */
  readonly onResponse: (controlPlane: string, send: (request: Buffer) => void) => void
  /** The request that reports that this client stops; `undefined`: the server would reject it. */
  readonly lastRequest: () => Buffer | undefined
  /** Must be called when the stream is closed. */
  readonly onClose: () => void
}

/** Minimum time between two reports; the next one contains what happens in the meantime. */
const REPORT_EVERY_MS = 60_000
const CHECK_EVERY_MS = 1000
const empty = { node: undefined, version: '', nonce: '', error: undefined }

/** Creates a sender; a report that is in flight when its stream closes can be lost. */
export function createReportSender(reports: Reports | undefined): ReportSender {
  let lastMs = -Infinity
  let timer: NodeJS.Timeout | undefined
  let isController = false
  const report = ({ typeUrl, take }: Reports, send: (request: Buffer) => void) => {
    if (monotonicMs() - lastMs < REPORT_EVERY_MS) return
    const resourceNames = take()
    if (resourceNames.length === 0) return
    lastMs = monotonicMs()
    send(writeDiscoveryRequest({ ...empty, typeUrl, resourceNames }))
  }
  return {
    onResponse(controlPlane, send) {
      isController = controlPlane === CONTROL_PLANE
      if (reports === undefined || !isController) return
      timer ??= setInterval(report, CHECK_EVERY_MS, reports, send)
    },
    lastRequest: () =>
      isController ? writeDiscoveryRequest({ ...empty, typeUrl: LEAVE_TYPE_URL }) : undefined,
    onClose() {
      isController = false
      clearInterval(timer)
      timer = undefined
    },
  }
}
