// Sends reports to the server of a stream as requests of a type of their own: only to a server that
// identifies itself as Curtail's controller, because others may reject the type.
import { CONTROL_PLANE, writeDiscoveryRequest } from '../../protobuf/discovery.ts'
import { monotonicMs } from '../../resilience/deadline.ts'

/** What to report. */
export interface Reports {
  readonly typeUrl: string
  /** Takes what is reported next, in less than 64 KiB; empty: nothing. */
  readonly take: () => readonly string[]
}

/** Sends reports on one stream after the other. */
export interface ReportSender {
  /** Must be called with the identifier in each response, and how to send on its stream. */
  readonly onResponse: (controlPlane: string, send: (request: Buffer) => void) => void
  /** The stream is closed. */
  readonly onClose: () => void
}

/** What happens within this time after a report is in the next one. */
const REPORT_EVERY_MS = 60_000
const CHECK_EVERY_MS = 1000

/** Creates it; a report that is in flight when its stream closes can be lost. */
export function createReportSender(reports: Reports | undefined): ReportSender {
  let lastMs = -Infinity
  let timer: NodeJS.Timeout | undefined
  const report = ({ typeUrl, take }: Reports, send: (request: Buffer) => void) => {
    if (monotonicMs() - lastMs < REPORT_EVERY_MS) return
    const resourceNames = take()
    if (resourceNames.length === 0) return
    lastMs = monotonicMs()
    const about = { node: undefined, version: '', nonce: '', error: undefined }
    send(writeDiscoveryRequest({ ...about, typeUrl, resourceNames }))
  }
  return {
    onResponse(controlPlane, send) {
      if (reports === undefined || controlPlane !== CONTROL_PLANE) return
      timer ??= setInterval(report, CHECK_EVERY_MS, reports, send)
    },
    onClose() {
      clearInterval(timer)
      timer = undefined
    },
  }
}
