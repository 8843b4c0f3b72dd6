// The open-loop load generator: requests are due at a fixed rate that does not depend on the
// responses, like those of many clients. A request that finds no idle connection is counted as not
// sent and never delayed.
import { type RawResponse, type Connection, openConnection } from './connection.ts'
import { quantilesOf } from './report.ts'

/** The requests, and the loopback port that gets them. */
export interface OfferedLoad {
  readonly port: number
  readonly requestsPerSecond: number
  readonly seconds: number
  /** The maximum of requests in flight. */
  readonly connectionsMax: number
  /** The next request, serialised. */
  readonly request: () => Buffer
}

/** The figures of an offered load. Latencies count from the time when a request was due. */
export interface OfferedFigures {
  readonly due: number
  /** Due while every connection was busy. */
  readonly notSent: number
  /** Sent, but without a response: the connection failed or the request timed out. */
  readonly lost: number
  readonly statuses: Readonly<Record<number, number>>
  readonly p50Ms: number
  readonly p99Ms: number
  readonly p999Ms: number
}

const RESPONSE_MS_MAX = 5000
const TICK_MS = 1

/** Offers the load and waits for the responses. Throws if it cannot connect. */
export async function offerLoad(load: OfferedLoad): Promise<OfferedFigures> {
  const idle: Slot[] = []
  const statuses: Record<number, number> = {}
  const dueMax = Math.floor(load.requestsPerSecond * load.seconds)
  const latenciesMs = new Float64Array(dueMax)
  let completed = 0
  let failed = 0
  const onResponse = (slot: Slot, { status }: RawResponse) => {
    latenciesMs[completed++] = performance.now() - slot.dueMs
    statuses[status] = (statuses[status] ?? 0) + 1
    idle.push(slot)
  }
  const slots = await Promise.all(
    Array.from({ length: load.connectionsMax }, () =>
      openSlot({
        port: load.port,
        onResponse,
        onFault(slot) {
          if (slot.isBusy) failed++
          else idle.splice(idle.indexOf(slot), 1)
        },
      }),
    ),
  )
  idle.push(...slots)
  try {
    const { sent, notSent } = await sendAsDue({ load, dueMax, idle })
    const endMs = performance.now() + RESPONSE_MS_MAX
    while (completed + failed < sent && performance.now() < endMs) await tick()
    const quantile = quantilesOf(latenciesMs, completed)
    return {
      due: dueMax,
      notSent,
      lost: sent - completed,
      statuses,
      p50Ms: quantile(0.5),
      p99Ms: quantile(0.99),
      p999Ms: quantile(0.999),
    }
  } finally {
    for (const slot of slots) slot.connection.close()
  }
}

interface Slot {
  readonly connection: Connection
  isBusy: boolean
  /** When its last request was due, by `performance.now`. */
  dueMs: number
}

async function openSlot(given: {
  readonly port: number
  readonly onResponse: (slot: Slot, response: RawResponse) => void
  readonly onFault: (slot: Slot) => void
}): Promise<Slot> {
  let hasFailed = false
  const slot = { isBusy: false, dueMs: 0 } as { -readonly [K in keyof Slot]: Slot[K] }
  slot.connection = await openConnection({
    port: given.port,
    onResponse(response) {
      slot.isBusy = false
      given.onResponse(slot, response)
    },
    onFault() {
      if (!hasFailed) given.onFault(slot)
      hasFailed = true
    },
  })
  return slot
}

async function sendAsDue(given: {
  readonly load: OfferedLoad
  readonly dueMax: number
  readonly idle: Slot[]
}): Promise<{ sent: number; notSent: number }> {
  const { load, dueMax, idle } = given
  const everyMs = 1000 / load.requestsPerSecond
  const startMs = performance.now()
  let due = 0
  let notSent = 0
  while (due < dueMax) {
    const until = Math.min(dueMax, Math.ceil((performance.now() - startMs) / everyMs))
    for (; due < until; due++) {
      const slot = idle.pop()
      if (slot === undefined) {
        notSent++
        continue
      }
      slot.isBusy = true
      slot.dueMs = startMs + due * everyMs
      slot.connection.send(load.request())
    }
    await tick()
  }
  return { sent: due - notSent, notSent }
}

function tick(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, TICK_MS))
}
