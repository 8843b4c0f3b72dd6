// Start and reload of large rule files: the CPU time and the memory of the limiter in the bundle of
// the image, beside the reference that REFERENCE_RATELIMIT names, with one rule and with 10,000.
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { imageEnvironment } from '../../k8s/image/build.ts'
import { bundle } from '../../k8s/image/bundle.ts'
import { freePort } from '../../test/dependencies/free-ports.ts'
import { waitFor } from '../../test/kit/wait-for.ts'
import { cpuUsOf, residentMbOf } from './process-figures.ts'
import { moveToGeneratorCore } from './pinning.ts'
import { type LimiterServer, startLimiter } from './ratelimit-server.ts'
import { type BenchOptions, conditionsOf, medianOf, type Report } from './report.ts'

const SIZES = [1, 10_000] as const
const RELOADS = 3
/** Maximum CPU time of 10,000 rules, at the start beyond that with one rule, and at a reload. */
const GOAL_MS = 600
const IDLE_MS_MAX = 20_000
const IDLE_STEP_MS = 300
/** A process is idle below this CPU time in a step: two ticks of the kernel's clock. */
const IDLE_CPU_US = 20_000
/** The limit of the rule whose limit each reload changes. */
const FIRST_LIMIT = 1_000_000

/** The figures of one process. */
interface Turn {
  readonly startMs: number
  readonly residentMb: number
  /** After the reloads. */
  readonly peakMb: number
  /** Medians of the reloads: CPU time, and elapsed time until the rules are active. */
  readonly reloadMs: number
  readonly activeMs: number
}

interface Cell {
  readonly program: string
  readonly rules: number
  readonly turns: Turn[]
}

/** Runs the benchmark; `--seconds` has no effect. */
export async function benchRules(options: BenchOptions): Promise<Report> {
  moveToGeneratorCore()
  const folder = await mkdtemp(join(tmpdir(), 'curtail-bench-'))
  try {
    const app = join(folder, 'app')
    await mkdir(app)
    await bundle(app)
    const reference = process.env['REFERENCE_RATELIMIT'] ?? ''
    const programs = [
      { program: 'ours', argv: [process.execPath, join(app, 'main.js'), 'ratelimit'] },
      ...(reference === '' ? [] : [{ program: 'Go', argv: [reference] }]),
    ]
    const cells = programs.flatMap((each) =>
      SIZES.map((rules) => ({ ...each, rules, turns: [] as Turn[] })),
    )
    for (let repetition = 0; repetition < options.repetitions; repetition++) {
      for (const cell of cells) {
        cell.turns.push(await measure(cell.argv, cell.rules, folder))
        options.log(`${cell.program}, ${cell.rules} rules: ${JSON.stringify(cell.turns.at(-1))}`)
      }
    }
    return reportOf(options, cells)
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** Starts a limiter, and changes its rules several times. */
async function measure(argv: readonly string[], rules: number, folder: string): Promise<Turn> {
  const root = join(folder, 'rules')
  const config = join(root, 'ratelimit', 'config')
  await mkdir(config, { recursive: true })
  await writeFile(join(config, 'bench.yaml'), rulesOf(rules, FIRST_LIMIT))
  const http = await freePort()
  const variables = { ...imageEnvironment, PATH: process.env['PATH'] ?? '' }
  const env = { ...variables, RUNTIME_ROOT: root, PORT: String(http) }
  const server = await startLimiter(argv, { localCacheBytes: 0, env })
  try {
    const startMs = await idleCpuMs(server)
    const { nowMb } = residentMbOf(server.pid)
    const reloads: { cpuMs: number; activeMs: number }[] = []
    for (let reload = 1; reload <= RELOADS; reload++) {
      const beforeMs = await idleCpuMs(server)
      await writeFile(join(root, 'next.yaml'), rulesOf(rules, FIRST_LIMIT + reload))
      const changedMs = performance.now()
      await rename(join(root, 'next.yaml'), join(config, 'bench.yaml'))
      const isActive = async () => (await firstLimit(http)) === FIRST_LIMIT + reload
      await waitFor('the new rules', isActive)
      const activeMs = performance.now() - changedMs
      reloads.push({ cpuMs: (await idleCpuMs(server)) - beforeMs, activeMs })
    }
    return {
      startMs,
      residentMb: nowMb,
      peakMb: residentMbOf(server.pid).peakMb,
      reloadMs: medianOf(reloads.map(({ cpuMs }) => cpuMs)),
      activeMs: medianOf(reloads.map(({ activeMs }) => activeMs)),
    }
  } finally {
    await server.stop()
    await rm(root, { recursive: true })
  }
}

/** The CPU time of a limiter so far in ms, once it is idle. */
async function idleCpuMs({ pid }: LimiterServer): Promise<number> {
  let beforeUs = cpuUsOf(pid)
  const isIdle = async () => {
    await sleep(IDLE_STEP_MS)
    const nowUs = cpuUsOf(pid)
    const usedUs = nowUs - beforeUs
    beforeUs = nowUs
    return usedUs < IDLE_CPU_US
  }
  await waitFor('an idle limiter', isIdle, IDLE_MS_MAX)
  return cpuUsOf(pid) / 1000
}

/** The limit of the first rule, by /json, which both limiters have. */
async function firstLimit(port: number): Promise<number | undefined> {
  const response = await fetch(`http://127.0.0.1:${port}/json`, {
    method: 'POST',
    body: '{"domain":"bench","descriptors":[{"entries":[{"key":"version","value":"1"}]}]}',
  })
  const { statuses } = (await response.json()) as {
    statuses?: { currentLimit?: { requestsPerUnit?: number } }[]
  }
  return statuses?.[0]?.currentLimit?.requestsPerUnit
}

function reportOf({ repetitions }: BenchOptions, cells: readonly Cell[]): Report {
  const medians = cells.map(({ program, rules, turns }) => {
    const median = (of: (turn: Turn) => number) => medianOf(turns.map(of))
    return {
      program,
      rules,
      startMs: median(({ startMs }) => startMs),
      reloadMs: median(({ reloadMs }) => reloadMs),
      activeMs: median(({ activeMs }) => activeMs),
      residentMb: median(({ residentMb }) => residentMb),
      peakMb: median(({ peakMb }) => peakMb),
    }
  })
  const ours = (count: number) =>
    medians.find(({ program, rules }) => program === 'ours' && rules === count)
  const [one, many] = SIZES.map(ours)
  const startMs = (many?.startMs ?? Number.NaN) - (one?.startMs ?? Number.NaN)
  return {
    bench: 'rules',
    conditions: {
      ...conditionsOf(),
      repetitions,
      'reloads each': RELOADS,
      'CPU time': 'user and system of all threads, until idle, exact to 20 ms',
    },
    headings: [
      'program',
      'rules',
      'start, CPU ms',
      'reload, CPU ms',
      'active after ms',
      'resident MB',
      'peak MB, after reloads',
    ],
    rows: medians.map(({ program, ...figures }) => [
      program,
      ...Object.values(figures).map((figure) => figure.toFixed(0)),
    ]),
    verdict: [
      verdictOf('a start, beyond one with one rule', startMs),
      verdictOf('a reload', many?.reloadMs),
    ],
    figures: { goalMs: GOAL_MS, cells },
  }
}

function verdictOf(what: string, ms = Number.NaN): string {
  const result = ms <= GOAL_MS ? 'reached' : 'NOT reached'
  return `CPU time of ${what}: ${ms.toFixed(0)} ms; goal at most ${GOAL_MS} ms: ${result}`
}

/** Rules in blocks and flow collections, flat and nested, with exact values, wildcards and none. */
function rulesOf(count: number, firstLimit: number): string {
  const limit = (requests: number) =>
    `rate_limit: {unit: minute, requests_per_unit: ${requests + 10}}`
  const lines = ['domain: bench', 'descriptors:', `  - {key: version, ${limit(firstLimit - 10)}}`]
  for (let n = 1; n < count; n++) {
    const kind = n % 10
    if (kind === 0) lines.push(`  - {key: plan, value: plan-${n}, ${limit(n)}}`)
    else if (kind === 1) lines.push('  - key: tenant', `    value: t${n}`, `    ${limit(n)}`)
    else if (kind === 2) lines.push('    descriptors:', `      - {key: client, ${limit(n)}}`)
    else if (kind < 6) lines.push(`      - {key: path, value: /v1/items/${n}, ${limit(n)}}`)
    else if (kind < 9) lines.push(`      - {key: path, value: /v1/*/${n}, ${limit(n)}}`)
    else lines.push('      - key: path', `        value: /v2/${n}/*`, `        ${limit(n)}`)
  }
  return `${lines.join('\n')}\n`
}
