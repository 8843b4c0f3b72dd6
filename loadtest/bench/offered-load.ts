// The open load generator: requests fall due at a fixed rate whether or not answers come, as those
// of many clients do. What finds no free connection is counted as not sent, never put off.
import { type Answer, type Connection, openConnection } from './connection.ts'
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
  readonly unanswered: number
  readonly statuses: Readonly<Record<number, number>>
  readonly p50Ms: number
  readonly p99Ms: number
  readonly p999Ms: number
}

const ANSWER_MS_MAX = 5000
const TICK_MS = 1

/** Offers the load and waits for the answers. Throws where no connection can be made. */
export async function offerLoad(load: OfferedLoad): Promise<Offered> {
  const idle: Lane[] = []
  const statuses: Record<number, number> = {}
  const dueMax = Math.floor(load.requestsASecond * load.seconds)
  const latenciesMs = new Float64Array(dueMax)
  let answered = 0
  let broken = 0
  const onAnswer = (lane: Lane, { status }: Answer) => {
    latenciesMs[answered++] = performance.now() - lane.dueMs
    statuses[status] = (statuses[status] ?? 0) + 1
    idle.push(lane)
  }
  const lanes = await Promise.all(
    Array.from({ length: load.connectionsMax }, () =>
      openLane({
        port: load.port,
        onAnswer,
        onBroken(lane) {
          if (lane.isBusy) broken++
          else idle.splice(idle.indexOf(lane), 1)
        },
      }),
    ),
  )
  idle.push(...lanes)
  try {
    const { sent, notSent } = await sendAsDue({ load, dueMax, idle })
    const endMs = performance.now() + ANSWER_MS_MAX
    while (answered + broken < sent && performance.now() < endMs) await tick()
    const quantile = quantilesOf(latenciesMs, answered)
    return {
      due: dueMax,
      notSent,
      unanswered: sent - answered,
      statuses,
      p50Ms: quantile(0.5),
      p99Ms: quantile(0.99),
      p999Ms: quantile(0.999),
    }
  } finally {
    for (const lane of lanes) lane.connection.close()
  }
}

interface Lane {
  readonly connection: Connection
  isBusy: boolean
  /** When its last request was due, on the clock of `performance.now`. */
  dueMs: number
}

async function openLane(given: {
  readonly port: number
  readonly onAnswer: (lane: Lane, answer: Answer) => void
  readonly onBroken: (lane: Lane) => void
}): Promise<Lane> {
  let isBroken = false
  const lane = { isBusy: false, dueMs: 0 } as { -readonly [K in keyof Lane]: Lane[K] }
  lane.connection = await openConnection({
    port: given.port,
    onAnswer(answer) {
      lane.isBusy = false
      given.onAnswer(lane, answer)
    },
    onFault() {
      if (!isBroken) given.onBroken(lane)
      isBroken = true
    },
  })
  return lane
}

async function sendAsDue(given: {
  readonly load: OfferedLoad
  readonly dueMax: number
  readonly idle: Lane[]
}): Promise<{ sent: number; notSent: number }> {
  const { load, dueMax, idle } = given
  const everyMs = 1000 / load.requestsASecond
  const begunMs = performance.now()
  let due = 0
  let notSent = 0
  while (due < dueMax) {
    const until = Math.min(dueMax, Math.ceil((performance.now() - begunMs) / everyMs))
    for (; due < until; due++) {
      const lane = idle.pop()
      if (lane === undefined) {
        notSent++
        continue
      }
      lane.isBusy = true
      lane.dueMs = begunMs + due * everyMs
      lane.connection.send(load.request())
    }
    await tick()
  }
  return { sent: due - notSent, notSent }
}

function tick(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, TICK_MS))
}
