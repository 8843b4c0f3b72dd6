// `npm run peak`: the highest rate that the whole service carries on this machine. Offers redirects
// of the load `public`, then k6's scenario `mixed`, at rising rates until p99 reaches 100 ms or a
// request is not sent or fails. Ends with the cores that the peak of 12,000 redirects/s needs.
import { availableParallelism } from 'node:os'
import { type Stop, stopInTurn } from '../../src/process/stop.ts'
import { findK6, runK6 } from '../../test/dependencies/k6.ts'
import { rulesOf } from '../../test/stack/stack-allowance.ts'
import type { RunData } from '../summaries.ts'
import { fillCache } from './fill-links.ts'
import type { OfferedFigures } from './offered-load.ts'
import { requestsOf } from './path-loads.ts'
import { isCarried, P99_GOAL_MS, type PathSpan, pathTableOf, sumUsOf } from './path-report.ts'
import {
  type Contender,
  contenderOf,
  LINKS,
  measureOn,
  measureSpan,
  renderSpan,
  startService,
} from './path-service.ts'
import { moveToCores } from './pinning.ts'
import { type BenchOptions, conditionsOf, type Report } from './report.ts'

const PEAK = 12_000
const RATES = [
  ...[1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10_000, 11_000, 12_000, 14_000],
  ...[16_000, 20_000, 24_000, 32_000, 40_000],
] as const
/** Long enough for V8 and the JVM to compile hot code. */
const WARM_UP = { redirectsPerSecond: 2500, seconds: 30 } as const
/**
 * While the rate rises, a rate that is not carried is offered twice, because other programs may
 * pause the service. This only decides which rates are offered for CONFIRM_SECONDS.
 */
const ATTEMPTS_MAX = 2
/** The highest rate carried is then offered once for this time; if not held, the next lower. */
const CONFIRM_SECONDS = 60
/** k6 starts enough users before the load for responses within twice the goal. */
const USER_SECONDS = (2 * P99_GOAL_MS) / 1000
/** k6 creates its links and starts its users before the load, and completes requests after it. */
const K6_EXTRA_SECONDS = 60

const cores = availableParallelism()
/** More pods and workers on a larger machine. */
const size = {
  pods: Math.ceil(cores / 4),
  envoyWorkers: Math.max(1, Math.floor(cores / 2)),
} as const

/** One kind of load at a rate on a contender. */
type Measure = (given: {
  readonly contender: Contender
  readonly rate: number
  readonly seconds: number
}) => Promise<PathSpan>

/** Runs the benchmark; `repetitions` has no effect. */
export async function benchPeak(
  options: BenchOptions & { readonly links?: number },
): Promise<Report> {
  const { links = LINKS, seconds, log } = options
  const closing: Stop[] = []
  try {
    const conditions = conditionsOf()
    await findK6()
    const stack = await startService({ ...size, links, log })
    closing.push(() => stack.stop())
    await fillCache(stack.cache.port, links)
    await stack.writeRules(await rulesOf({ hasAllowance: true }))
    const allowed = await stack.startEdge({ hasAllowance: true })
    const contenders = [
      contenderOf('ours', stack, stack.edge),
      contenderOf('allowance', stack, allowed),
    ]
    const measures = [
      { measure: openLoop(links), hasOwnCores: true },
      { measure: mixed(links), hasOwnCores: false }, // k6 needs more than the other cores
    ]
    const spans: PathSpan[] = []
    const verdict: string[] = []
    for (const { measure, hasOwnCores } of measures) {
      for (const contender of contenders) {
        placeOnCores(contender, hasOwnCores)
        const climbed = await climb({ measure, contender, seconds, log })
        spans.push(...climbed.spans)
        verdict.push(climbed.verdict)
      }
    }
    return {
      bench: 'peak',
      conditions: { ...conditions, 'seconds each': seconds, links, ...size },
      ...pathTableOf(spans.map((span) => [span])),
      verdict,
      figures: spans,
    }
  } finally {
    await stopInTurn(closing.toReversed())
  }
}

/**
 * Moves the workers of Envoy to cores of their own, as the kubelet's static CPU manager does, and
 * all other processes to the other cores; or all to all cores. With one core, has no effect.
 */
function placeOnCores({ pids }: Contender, hasOwnCores: boolean): void {
  if (cores === 1) return
  const all = `0-${cores - 1}`
  const ofEnvoy = `0-${size.envoyWorkers - 1}`
  const others = `${size.envoyWorkers}-${cores - 1}`
  const move = (each: readonly number[], to: string) => {
    for (const pid of each) moveToCores(pid, hasOwnCores ? to : all)
  }
  for (const [name, each] of Object.entries(pids)) move(each, name === 'envoy' ? ofEnvoy : others)
  move([process.pid], others)
}

/** Whether every request was sent and got the right response, with p99 under its maximum. */
function isPerfect(span: PathSpan): boolean {
  const { creates } = span
  const areCreated = creates === undefined || creates.statuses[201] === creates.due
  return areCreated && isCarried(span, 1)
}

/** Raises the rate until it is not carried, then finds the highest rate that is held for longer. */
async function climb(given: {
  readonly measure: Measure
  readonly contender: Contender
  readonly seconds: number
  readonly log: BenchOptions['log']
}): Promise<{ spans: PathSpan[]; verdict: string }> {
  const { measure, contender, seconds, log } = given
  const spans: PathSpan[] = []
  const offer = async (rate: number, spanSeconds: number): Promise<PathSpan> => {
    const span = await measure({ contender, rate, seconds: spanSeconds })
    log(renderSpan(span))
    spans.push(span)
    return span
  }
  await measure({ contender, rate: WARM_UP.redirectsPerSecond, seconds: WARM_UP.seconds })
  const carried: number[] = []
  for (const rate of RATES) {
    let isCarriedNow = false
    for (let attempt = 0; attempt < ATTEMPTS_MAX && !isCarriedNow; attempt++)
      isCarriedNow = isPerfect(await offer(rate, seconds))
    if (!isCarriedNow) break
    carried.push(rate)
  }
  for (const rate of carried.toReversed()) {
    const longest = await offer(rate, CONFIRM_SECONDS)
    if (isPerfect(longest)) return { spans, verdict: verdictOf(longest) }
  }
  const load = spans[0]?.load ?? ''
  return { spans, verdict: `${contender.name}, ${load}: no rate held for ${CONFIRM_SECONDS} s` }
}

function verdictOf(held: PathSpan): string {
  const needed = ((PEAK * sumUsOf(held)) / 1e6).toFixed(1)
  return (
    `${held.contender}, ${held.load}: ${held.redirectsPerSecond}/s with p99 under ` +
    `${P99_GOAL_MS} ms and every response right for ${CONFIRM_SECONDS} s; at its CPU time per ` +
    `request, ${PEAK}/s keep ${needed} cores busy, without the load generator`
  )
}

/** Redirects of a million addresses by the open-loop generator. */
function openLoop(links: number): Measure {
  const requests = requestsOf('public', links)
  return ({ contender, rate, seconds }) => {
    const shared = { load: 'public', createsPerSecond: 0, cachedLinks: links, seconds } as const
    return measureSpan({ contender, offer: { ...shared, redirectsPerSecond: rate }, requests })
  }
}

/** The scenario `mixed` of k6; its redirects are reported. */
function mixed(links: number): Measure {
  return async ({ contender, rate, seconds }) => {
    const env = {
      BASE_URL: `http://127.0.0.1:${contender.port}`,
      RATE: String(rate),
      DURATION: `${seconds}s`,
      USERS: String(10 + Math.ceil(rate * USER_SECONDS)),
    }
    const msMax = (seconds + K6_EXTRA_SECONDS) * 1000
    const { result, ...used } = await measureOn(contender, async () => {
      const { json, stderr } = await runK6('mixed', { env, msMax, niceness: 0 })
      if (json === undefined) throw new Error(`k6 failed: ${stderr}`)
      return mixedFiguresOf(JSON.parse(json) as RunData)
    })
    const { redirects, creates } = result
    return {
      contender: contender.name,
      load: 'mixed',
      cachedLinks: links,
      redirectsPerSecond: rate,
      createsPerSecond: creates.due / seconds,
      ...{ redirects, creates },
      ...used,
    }
  }
}

/** The figures of a run of `mixed`; dropped iterations count as redirects. */
function mixedFiguresOf({ metrics }: RunData): Record<'redirects' | 'creates', OfferedFigures> {
  const figure = (metric: string, name: string) => metrics[metric]?.values[name] ?? 0
  const figuresOf = (scenarios: readonly string[], status: number, notSent: number) => {
    const sum = (name: string) =>
      scenarios.reduce((all, one) => all + figure(`checks{scenario:${one}}`, name), 0)
    const worst = (name: string) =>
      Math.max(...scenarios.map((one) => figure(`http_req_duration{scenario:${one}}`, name)))
    const [passed, failed] = [sum('passes'), sum('fails')]
    return {
      due: passed + failed + notSent,
      notSent,
      lost: failed,
      statuses: { [status]: passed },
      ...{ p50Ms: worst('med'), p99Ms: worst('p(99)'), p999Ms: worst('p(99.9)') },
    }
  }
  const dropped = figure('dropped_iterations', 'count')
  return {
    redirects: figuresOf(['redirects_hot', 'redirects_cold'], 302, dropped),
    creates: figuresOf(['creates'], 201, 0),
  }
}
