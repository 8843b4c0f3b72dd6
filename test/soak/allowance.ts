// The allowance with two Envoys, a limiter and Redis, all real, that are killed, hang and become
// slow under load: redirects that allowance or limiter admit never exceed the rule, those without
// the limiter never exceed the local limit, and no client below the lowest rule is denied.
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type AllowanceWorld,
  allowanceFaults,
  EDGES,
  type Fault,
  lowest,
  MARK,
  rule,
  startAllowanceWorld,
  stopAllowanceWorld,
} from '../kit/edge/allowance-world.ts'
import { headersOf, jsonOf } from '../kit/http/raw-http.ts'
import { createRandom, type Random } from '../kit/random.ts'
import { type AdmissionLedger, createLedger } from '../kit/ratelimit/admission-ledger.ts'

const seconds = Math.min(3600, Math.max(10, Number(process.env['SECONDS'] ?? 120)))
const BUSY_CLIENTS = 3
const IN_FLIGHT = 4
const CALM_CLIENTS = 4
/** A busy client sends until its buckets are empty, then rests until they are full. */
const CYCLE_MS = 6000
const REST_MS = 3000
/** A calm client does not use the whole lowest rule, as its clock is not the limiter's. */
const CALM = { burst: lowest.burst - 3, perSecond: 0.8 * lowest.perSecond }
const CALM_REST_MS_MAX = 4000

type Log = (line: string) => void

/** What has happened so far. */
interface Run {
  readonly world: AllowanceWorld
  readonly busy: readonly BusyClient[]
  isStopping: boolean
  /** The last fault, and whether it is over. */
  fault: string
  requests: number
  denied: number
  failed: number
  failure: Error | undefined
}

/** A client that exceeds its limit. */
interface BusyClient {
  readonly address: string
  /** Admissions by allowance or limiter. */
  readonly counted: AdmissionLedger
  /** Admissions of each Envoy without the limiter, by allowance or local limit. */
  readonly locals: readonly AdmissionLedger[]
}

/** One request; undefined if the Envoy is down, which only its kill may cause. */
async function send(run: Run, at: number, client: string) {
  const edge = run.world.edges[at]
  if (edge === undefined) return undefined
  run.requests++
  return edge.send({ path: '/a', client }).catch(() => {
    run.failed++
    return undefined
  })
}

/** Sends requests to random Envoys, and records which are admitted, and by what. */
async function exceed(run: Run, client: BusyClient, random: Random): Promise<void> {
  const offsetMs = 1000 * run.busy.indexOf(client)
  while (!run.isStopping) {
    if ((performance.now() + offsetMs) % CYCLE_MS < REST_MS) {
      await sleep(50)
      continue
    }
    const at = random.int(EDGES)
    const edge = run.world.edges[at]
    const response = await send(run, at, client.address)
    if (response === undefined) await sleep(20)
    else if (response.status === 429) {
      run.denied++
      await sleep(random.int(10))
    } else if (response.status === 302 && edge === run.world.edges[at]) {
      const [remaining] = headersOf(response, 'X-RateLimit-Remaining')
      if (remaining !== undefined) client.counted.admit()
      if (remaining === undefined || remaining === String(MARK)) client.locals[at]?.admit()
    }
  }
}

/** Sends requests within the lowest rule, at times as a burst; none may be denied. */
async function stayBelow(run: Run, address: string, random: Random): Promise<void> {
  let [tokens, updatedMs] = [CALM.burst, performance.now()]
  while (!run.isStopping) {
    const nowMs = performance.now()
    tokens = Math.min(CALM.burst, tokens + (CALM.perSecond * (nowMs - updatedMs)) / 1000)
    updatedMs = nowMs
    if (tokens < 1 || random.chance(0.02)) {
      await sleep(random.int(CALM_REST_MS_MAX))
      continue
    }
    tokens--
    const response = await send(run, random.int(EDGES), address)
    if (response?.status === 429) {
      const { rule: by } = jsonOf(response)
      run.failure ??= new Error(
        `${address}, below the lowest rule: denied by ${String(by)}, ${run.fault}`,
      )
    }
  }
}

/** Every fault in random order, until the time is over. */
async function causeFaults(run: Run, { random, log }: { random: Random; log: Log }) {
  const endMs = performance.now() + seconds * 1000
  const counts = new Map<string, number>()
  let left: [string, Fault][] = []
  await sleep(2000)
  while (performance.now() < endMs && run.failure === undefined) {
    if (left.length === 0) left = Object.entries(allowanceFaults)
    const [next] = left.splice(random.int(left.length), 1)
    if (next === undefined) break
    const [name, fault] = next
    const allow = () => {
      const hits = fault.losesCounters === true ? rule.burst : 0
      for (const { counted } of run.busy) counted.credit(hits)
    }
    run.fault = name
    await fault.start(run.world)
    allow()
    await sleep(300 + random.int(1200))
    await fault.end(run.world)
    run.fault = `after ${name}`
    allow()
    await sleep(500 + random.int(1000))
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  log([...counts].map(([name, count]) => `${count} × ${name}`).join(', '))
}

/** Throws the first violation. */
function check(run: Run, log: Log): void {
  if (run.failure !== undefined) throw run.failure
  const { requests, denied, failed } = run
  log(`${requests} requests: ${denied} denied, ${failed} without a response of a killed Envoy`)
  for (const { address, counted, locals } of run.busy) {
    const places = [counted, ...locals]
    const figures = places.map((one) => `${one.admitted()} (${one.excess().toFixed(1)})`)
    log(`${address}: allowance or limiter, and each Envoy alone (excess): ${figures.join(', ')}`)
    if (places.some((one) => one.excess() > 0)) {
      throw new Error(`${address} has got more than the rule`)
    }
    if (counted.admitted() < rule.burst) throw new Error(`${address} has not got its limit`)
  }
}

/** Runs the test for SECONDS. */
export async function run({ seed, log }: { seed: number; log: Log }): Promise<void> {
  const random = createRandom(seed)
  const world = await startAllowanceWorld()
  const busy = Array.from({ length: BUSY_CLIENTS }, (_, n) => ({
    address: `198.51.100.${n + 1}`,
    counted: createLedger(rule, IN_FLIGHT),
    locals: world.edges.map(() => createLedger(rule, IN_FLIGHT)),
  }))
  const counts = {
    isStopping: false,
    fault: 'none',
    requests: 0,
    denied: 0,
    failed: 0,
    failure: undefined,
  }
  const running: Run = { world, busy, ...counts }
  world.onRestart = (at, { allowance }) => {
    for (const { counted, locals } of busy) {
      counted.credit(allowance)
      locals[at]?.credit(rule.burst)
    }
  }
  const guard = (work: Promise<void>) =>
    work.catch((error: unknown) => {
      running.failure ??= error as Error
    })
  try {
    const exceeding = busy.flatMap((client) =>
      Array.from({ length: IN_FLIGHT }, () => guard(exceed(running, client, random))),
    )
    const calm = Array.from({ length: CALM_CLIENTS }, (_, n) =>
      guard(stayBelow(running, `203.0.113.${n + 1}`, random)),
    )
    await guard(causeFaults(running, { random, log }))
    running.isStopping = true
    await Promise.all([...exceeding, ...calm])
    check(running, log)
  } finally {
    await stopAllowanceWorld(world)
  }
}
