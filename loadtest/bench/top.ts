// The clients with the most hits, as `limit top` shows them: how many of the true top 20 the
// limiter finds, and the cost of counting. Runs the limiter's code in this process.
import { TopValues } from '../../src/limiter/stats/top-values.ts'
import { planChecks, type Check } from '../../src/limits/plan-checks.ts'
import { parseRules } from '../../src/limits/parse-rules.ts'
import { type BenchOptions, conditionsOf, medianOf, type Report } from './report.ts'
import { drawZipf } from './zipf.ts'

const CLIENTS = 10_000_000
const EXPONENT = 1
/** The specification's peak. */
const HITS_PER_SECOND = 12_000
const HITS_PER_MINUTE = 60 * HITS_PER_SECOND
const BATCH = 1000
const TOP = 20
const RECALL_GOAL = 0.95
const CPU_GOAL = 0.01
const MIB = 1024 * 1024

const source = `
domain: edge
descriptors:
- key: client
  rate_limit: { unit: second, requests_per_unit: 500 }
`

/** The figures of one minute of hits. */
interface Minute {
  /** The share of the true top 20 that was found. */
  readonly recall: number
  /** Elapsed time of counting on one busy core, without the creation of the hits. */
  readonly usPerHit: number
  readonly rssMib: number
}

/** Runs the benchmark: each repetition is one minute of hits at the specification's peak. */
export function benchTop({ repetitions, log }: BenchOptions): Promise<Report> {
  const conditions = { ...conditionsOf(), clients: CLIENTS, 'hits per minute': HITS_PER_MINUTE }
  const top = new TopValues({ random: Math.random, nowMs: 0 })
  const draw = drawZipf({ count: CLIENTS, exponent: EXPONENT, random: Math.random })
  const hits = new Uint32Array(CLIENTS)
  const createCheck = checkFactory()
  countMinute({ top, draw, hits, createCheck }) // V8 compiles the hot code
  const minutes = Array.from({ length: repetitions }, () => {
    const minute = countMinute({ top, draw, hits, createCheck })
    log(`minute: recall ${minute.recall}, ${minute.rssMib.toFixed(0)} MiB resident`)
    return minute
  })
  return Promise.resolve(reportOf(minutes, conditions))
}

/** Returns a function that creates the check of a client's request. */
function checkFactory(): (client: number) => Check {
  const parsed = parseRules([{ name: 'bench', text: source }], { mergeDomains: false })
  if ('faults' in parsed) throw new Error(parsed.faults[0]?.message)
  const options = { areAllShadow: false, areAllQuotas: false, denyConsumes: true }
  return (client) => {
    const entries = [{ key: 'client', value: addressOf(client) }]
    const descriptors = [{ entries, override: undefined, hits: undefined }]
    const request = { domain: 'edge', descriptors, hits: 1 }
    const [check] = planChecks(parsed.rules, request, options).checks
    if (check === undefined) throw new Error('Cannot run the benchmark: no rule matches')
    return check
  }
}

function addressOf(client: number): string {
  return `10.${client >> 16}.${(client >> 8) & 255}.${client & 255}`
}

function countMinute(given: {
  top: TopValues
  draw: () => number
  hits: Uint32Array
  createCheck: (client: number) => Check
}): Minute {
  const { top, draw, hits, createCheck } = given
  hits.fill(0)
  let elapsedUs = 0
  for (let counted = 0; counted < HITS_PER_MINUTE; counted += BATCH) {
    const clients = Array.from({ length: BATCH }, draw)
    for (const client of clients) hits[client] = (hits[client] ?? 0) + 1
    const checks = clients.map(createCheck)
    const startedMs = performance.now()
    for (const check of checks) top.record(check, true)
    elapsedUs += (performance.now() - startedMs) * 1000
  }
  const startedMs = performance.now()
  const { top: found } = top.endMinute(0)
  elapsedUs += (performance.now() - startedMs) * 1000
  const expected = largestOf(hits).map(addressOf)
  const first = new Set(found.slice(0, TOP).map(({ values }) => values[0]))
  return {
    recall: expected.filter((client) => first.has(client)).length / TOP,
    usPerHit: elapsedUs / HITS_PER_MINUTE,
    rssMib: process.memoryUsage.rss() / MIB,
  }
}

/** The clients with the most hits, which have low numbers by Zipf's law. */
function largestOf(hits: Uint32Array): number[] {
  const candidates = [...hits.subarray(0, 100 * TOP).keys()]
  return candidates.sort((a, b) => (hits[b] ?? 0) - (hits[a] ?? 0)).slice(0, TOP)
}

function reportOf(minutes: readonly Minute[], conditions: Report['conditions']): Report {
  const usPerHit = medianOf(minutes.map((minute) => minute.usPerHit))
  const recall = Math.min(...minutes.map((minute) => minute.recall))
  const cpu = (usPerHit * HITS_PER_SECOND) / 1_000_000
  const rows = minutes.map((minute, at) => [
    String(at + 1),
    minute.recall.toFixed(2),
    minute.usPerHit.toFixed(3),
    minute.rssMib.toFixed(0),
  ])
  const isReached = recall >= RECALL_GOAL && cpu < CPU_GOAL
  return {
    bench: 'top',
    conditions,
    headings: ['minute', 'recall', 'µs per hit', 'resident MiB'],
    rows,
    verdict: [
      `Recall of the top ${TOP}: at least ${recall.toFixed(2)} (goal ${RECALL_GOAL}). ` +
        `Counting takes ${(cpu * 100).toFixed(2)} % of a core at ${HITS_PER_SECOND} hits/s ` +
        `(goal: less than ${CPU_GOAL * 100} %). ${isReached ? 'Reached' : 'Not reached'}.`,
    ],
    figures: minutes,
  }
}
