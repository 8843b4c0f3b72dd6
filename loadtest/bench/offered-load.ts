// The open load generator: requests fall due at a fixed rate whether or not answers come, as those
// of many clients do. What finds no free connection is counted as not sent, never put off.
import { type RawResponse, type Connection, openConnection } from './connection.ts'
import { quantilesOf } from './report.ts'

/** What is offered, and to whom on this machine. */
export interface OfferedLoad {
  readonly port: number
  readonly requestsASecond: number
  readonly seconds: number
  /** Requests under way at once, at most. */
  readonly connectionsMax: number
  /** The next request, serialised. */
  readonly request: () => Buffer
}

/** What came of it. Times count from the moment at which a request was due. */
export interface Offered {
  readonly due: number
  /** Due while every connection was busy. */
  readonly notSent: number
  /** Sent, and the connection broke or stayed silent. */
  readonly lost: number
  readonly statuses: Readonly<Record<number, number>>
  readonly p50Ms: number
  readonly p99Ms: number
  readonly p999Ms: number
}

const RESPONSE_MS_MAX = 5000
const TICK_MS = 1

/** Offers the load and waits for the answers. Throws where no connection can be made. */
export async function offerLoad(load: OfferedLoad): Promise<Offered> {
  const idle: Slot[] = []
  const statuses: Record<number, number> = {}
  const dueMax = Math.floor(load.requestsASecond * load.seconds)
  const latenciesMs = new Float64Array(dueMax)
  let completed = 0
  let broken = 0
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
        onBroken(slot) {
          if (slot.isBusy) broken++
          else idle.splice(idle.indexOf(slot), 1)
        },
      }),
    ),
  )
  idle.push(...slots)
  try {
    const { sent, notSent } = await sendAsDue({ load, dueMax, idle })
    const endMs = performance.now() + RESPONSE_MS_MAX
    while (completed + broken < sent && performance.now() < endMs) await tick()
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
  /** When its last request was due, on the clock of `performance.now`. */
  dueMs: number
}

async function openSlot(given: {
  readonly port: number
  readonly onResponse: (slot: Slot, response: RawResponse) => void
  readonly onBroken: (slot: Slot) => void
}): Promise<Slot> {
  let isBroken = false
  const slot = { isBusy: false, dueMs: 0 } as { -readonly [K in keyof Slot]: Slot[K] }
  slot.connection = await openConnection({
    port: given.port,
    onResponse(response) {
      slot.isBusy = false
      given.onResponse(slot, response)
    },
    onFault() {
      if (!isBroken) given.onBroken(slot)
      isBroken = true
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
  const everyMs = 1000 / load.requestsASecond
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
