// Resident memory of standalone with a million links: creates them over HTTP, then requests them by
// Zipf's law, a few very often and most rarely, mixed with unknown codes.
import { createLinks } from './create-links.ts'
import { type LoadFigures, prepareLoad } from './drive.ts'
import { startLimited } from './limited-standalone.ts'
import { moveToGeneratorCore } from './pinning.ts'
import { residentMbOf } from './process-figures.ts'
import { type BenchOptions, conditionsOf, type Report } from './report.ts'

const GOAL_MB = 250
const LINKS = 1_000_000
const REDIRECTS = 3_000_000
const REDIRECT_MS_MAX = 300_000
const CONNECTIONS = 64
/** One of this many requests has an unknown code. */
const UNKNOWN_EVERY = 10

/** Runs the benchmark. Its size is fixed: `--repetitions` and `--seconds` have no effect. */
export async function benchMemory(options: BenchOptions): Promise<Report> {
  moveToGeneratorCore()
  const conditions = conditionsOf()
  const ours = await startLimited()
  try {
    const idle = residentMbOf(ours.pid)
    const startMs = performance.now()
    const codes = await createLinks({ port: ours.port, links: LINKS })
    const seconds = (performance.now() - startMs) / 1000
    const created = residentMbOf(ours.pid)
    options.log(`created ${LINKS} links in ${seconds.toFixed(0)} s`)
    const driven = await requestCodes(ours.port, codes)
    const redirected = residentMbOf(ours.pid)
    return {
      bench: 'memory',
      conditions: { ...conditions, links: LINKS, requests: driven.responses },
      headings: ['after', 'resident MB', 'peak so far MB'],
      rows: Object.entries({ start: idle, creating: created, redirecting: redirected }).map(
        ([name, { nowMb, peakMb }]) => [name, nowMb.toFixed(0), peakMb.toFixed(0)],
      ),
      verdict: [
        `${(LINKS / seconds).toFixed(0)} creates per second; responses to requests for codes: ` +
          Object.entries(driven.statuses)
            .map(([status, count]) => `${count} × ${status}`)
            .join(', '),
        `Peak ${redirected.peakMb.toFixed(0)} MB (10⁶ bytes); goal below ${GOAL_MB} MB: ` +
          (redirected.peakMb < GOAL_MB ? 'reached' : 'NOT reached'),
      ],
      figures: { goalMb: GOAL_MB, idle, created, redirected, createSeconds: seconds, driven },
    }
  } finally {
    await ours.stop()
  }
}

async function requestCodes(port: number, codes: readonly string[]): Promise<LoadFigures> {
  let sent = 0
  const request = () => {
    const exists = ++sent % UNKNOWN_EVERY !== 0
    const code = exists ? codes[zipfRank(codes.length)] : unknownCode()
    return Buffer.from(`GET /${code ?? ''} HTTP/1.1\r\nHost: s.example\r\n\r\n`)
  }
  const driver = await prepareLoad({
    port,
    connections: CONNECTIONS,
    request,
    expectedStatuses: [302, 404],
    requestsMax: REDIRECTS,
    msMax: REDIRECT_MS_MAX,
  })
  return driver.run()
}

/** A rank below `count` by Zipf's law with exponent 1. */
function zipfRank(count: number): number {
  return Math.floor(count ** Math.random()) - 1
}

/** A code that does not exist: generated codes have 7 characters. */
function unknownCode(): string {
  return Math.random().toString(36).slice(2, 8).padEnd(6, '0')
}
