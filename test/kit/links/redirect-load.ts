// A load of redirects at a constant rate: hot links, random links, and a sample of links that are
// disabled meanwhile. Measures the response times, and checks each response.
import { setTimeout as sleep } from 'node:timers/promises'
import { type HttpClient, openHttpClient } from '../http/http-client.ts'
import { type RawResponse, headerOf } from '../http/raw-http.ts'
import type { Random } from '../random.ts'
import { isActive, isTarget, type LinkRecord, recordAt, type TableSize } from './link-rows.ts'

/** A running load. */
export interface RedirectLoad {
  /** The codes of the sample. */
  readonly sample: ReadonlySet<string>
  /** Records that the service has confirmed that a link is disabled. */
  confirm(code: string): void
  /** Drops the figures of a warm-up, also the number of responses with 503. */
  reset(): void
  /** The figures since the last call, on one line. */
  figures(): string
  /** Requests each link of the sample once; throws if one still redirects. */
  checkSample(): Promise<void>
  /** Stops the load. Throws if a response was not the expected one. */
  stop(): Promise<void>
}

const REQUESTS_PER_SECOND = 100
/** Slower responses are not sent as planned: the load is then lower. */
const IN_FLIGHT_MAX = 200
const HOT_LINKS = 1000
const SAMPLE_LINKS = 300
const PICK_MAX = 1000
/** All pods have stopped redirecting a link at this time after the confirmation. */
const STOPPED_MS_MAX = 5000
const UNAVAILABLE_RATIO_MAX = 0.01

/** Starts it. */
export function startRedirectLoad(given: {
  port: number
  size: TableSize
  random: Random
}): RedirectLoad {
  const { port, size, random } = given
  const client = openHttpClient(port)
  const pick = (wanted: boolean) => pickRecord(size, { random, wanted })
  const hot = Array.from({ length: HOT_LINKS }, () => pick(false))
  const sampled = Array.from({ length: SAMPLE_LINKS }, () => pick(true))
  const sample = new Map(sampled.map((record) => [record.code, record]))
  const confirmedMs = new Map<string, number>()
  const nextRecord = () => {
    const kind = random.int(10)
    if (kind < 5) return random.pick(hot)
    return kind < 6 ? random.pick(sampled) : pick(false)
  }
  const failures: string[] = []
  let times: number[] = []
  const none = { requests: 0, unavailable: 0, disabled: 0, skipped: 0 }
  const sum = { ...none }
  const send = async (record: LinkRecord, plannedMs: number) => {
    const sentMs = performance.now()
    const response = await client.send({ path: `/${record.code}` })
    times.push(performance.now() - plannedMs)
    sum.requests++
    const outcome = outcomeOf(response, record)
    if (outcome === 'unavailable') sum.unavailable++
    if (outcome === 'not found') sum.disabled++
    const afterMs = sentMs - (confirmedMs.get(record.code) ?? Infinity)
    if (!isAllowed(outcome, { afterMs, isSampled: sample.has(record.code) })) {
      failures.push(`/${record.code}: ${outcome} ${response.status}, ${Math.round(afterMs)} ms`)
    }
  }
  const onSkip = () => sum.skipped++
  const sending = paced((plannedMs) => send(nextRecord(), plannedMs), { failures, onSkip })
  return {
    sample: new Set(sample.keys()),
    confirm(code) {
      if (sample.has(code) && !confirmedMs.has(code)) confirmedMs.set(code, performance.now())
    },
    reset() {
      times = []
      Object.assign(sum, none)
    },
    figures() {
      const sorted = times.sort((a, b) => a - b)
      times = []
      const at = (share: number) => (sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(1)
      const counts = `${sum.unavailable} × 503, ${sum.disabled} of disabled links`
      const longest = `longest ${at(0.99999)} ms`
      return (
        `${sorted.length} redirects, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ${longest} ` +
        `(${counts} and ${sum.skipped} not sent so far)`
      )
    },
    checkSample: () => checkDisabled(client, [...sample.values()]),
    async stop() {
      await sending.stop()
      client.close()
      if (sum.unavailable > UNAVAILABLE_RATIO_MAX * sum.requests) {
        failures.push(`${sum.unavailable} of ${sum.requests} redirects got 503`)
      }
      if (failures.length > 0) {
        throw new Error(`${failures.length} redirects failed: ${failures.slice(0, 5).join('; ')}`)
      }
    },
  }
}

/** A random active link: a target or not, as wanted. */
function pickRecord(
  size: TableSize,
  { random, wanted }: { random: Random; wanted: boolean },
): LinkRecord {
  for (let tries = 0; tries < PICK_MAX; tries++) {
    // The number of the random target, or of any row.
    const target = Math.ceil((random.int(size.targets) * size.links) / size.targets)
    const i = wanted ? target : random.int(size.links)
    const record = recordAt(i, size)
    if (isTarget(i, size) === wanted && isActive(record)) return record
  }
  throw new Error(`no link found within ${PICK_MAX} attempts`)
}

function outcomeOf(response: RawResponse, { longUrl }: LinkRecord) {
  if (response.status === 302 && headerOf(response, 'Location') === longUrl) return 'redirect'
  if (response.status === 404) return 'not found'
  return response.status === 503 ? 'unavailable' : 'other'
}

/** `afterMs`: after the confirmation that the link is disabled; negative before. */
function isAllowed(
  outcome: ReturnType<typeof outcomeOf>,
  { afterMs, isSampled }: { afterMs: number; isSampled: boolean },
): boolean {
  if (outcome === 'redirect') return afterMs <= STOPPED_MS_MAX
  return outcome === 'unavailable' || (outcome === 'not found' && isSampled)
}

/** Calls `send` at the planned times, unless too many calls are in flight. */
function paced(
  send: (plannedMs: number) => Promise<void>,
  { failures, onSkip }: { failures: string[]; onSkip: () => void },
) {
  let isStopping = false
  const inFlight = new Set<Promise<void>>()
  const run = async () => {
    let plannedMs = performance.now()
    while (!isStopping) {
      plannedMs += 1000 / REQUESTS_PER_SECOND
      const waitMs = plannedMs - performance.now()
      if (waitMs > 0) await sleep(waitMs)
      if (inFlight.size >= IN_FLIGHT_MAX) {
        onSkip()
        continue
      }
      const sending = send(plannedMs)
        .catch((error: unknown) => void failures.push(String(error)))
        .finally(() => inFlight.delete(sending))
      inFlight.add(sending)
    }
    await Promise.all(inFlight)
  }
  const running = run()
  return {
    async stop() {
      isStopping = true
      await running
    },
  }
}

async function checkDisabled(client: HttpClient, records: readonly LinkRecord[]): Promise<void> {
  for (const { code } of records) {
    const { status } = await client.send({ path: `/${code}` })
    if (status !== 404) throw new Error(`/${code} is disabled: the status is ${status}, not 404`)
  }
}
