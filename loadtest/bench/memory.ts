// Resident memory of the roles in the image, and of standalone with a million links: creates them
// over HTTP, then requests them by Zipf's law, a few very often and most rarely, mixed with unknown
// codes.
import { createLinks } from './create-links.ts'
import { type LoadFigures, prepareLoad } from './drive.ts'
import { startLimited } from './limited-standalone.ts'
import { moveToGeneratorCore } from './pinning.ts'
import { type Memory, residentMbOf } from './process-figures.ts'
import { type BenchOptions, conditionsOf, type Report } from './report.ts'
import { measureRoles, type RoleMemory } from './role-memory.ts'

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
  const roles = await measureRoles(options)
  const links = await measureLinks(options)
  const states = Object.entries(links.memory).map(([state, memory]) => {
    return { program: 'standalone, checkout', state, memory, goalMb: undefined }
  })
  return {
    bench: 'memory',
    conditions: { ...conditions, links: LINKS, requests: links.driven.responses },
    headings: ['program', 'state', 'resident MB', 'anonymous MB', 'files MB', 'peak so far MB'],
    rows: [...roles, ...states].map(({ program, state, memory }) => [
      program,
      state,
      ...[memory.nowMb, memory.anonymousMb, memory.fileMb, memory.peakMb].map(renderMb),
    ]),
    verdict: [...roles.flatMap(verdictOf), ...verdictOfLinks(links)],
    figures: { goalMb: GOAL_MB, roles, links },
  }
}

const renderMb = (mb: number) => mb.toFixed(0)
const resultOf = (mb: number, goalMb: number) =>
  `goal at most ${goalMb} MB: ${mb <= goalMb ? 'reached' : 'NOT reached'}`

function verdictOf({ program, state, memory, goalMb }: RoleMemory): string[] {
  if (goalMb === undefined) return []
  return [`${program} ${state}: ${renderMb(memory.nowMb)} MB; ${resultOf(memory.nowMb, goalMb)}`]
}

/** The memory of standalone with a million links, and the figures of its load. */
interface LinkMemory {
  readonly memory: Readonly<Record<'started' | 'links created' | 'links requested', Memory>>
  readonly createSeconds: number
  readonly driven: LoadFigures
}

async function measureLinks(options: BenchOptions): Promise<LinkMemory> {
  const ours = await startLimited()
  try {
    const started = residentMbOf(ours.pid)
    const startMs = performance.now()
    const codes = await createLinks({ port: ours.port, links: LINKS })
    const createSeconds = (performance.now() - startMs) / 1000
    const created = residentMbOf(ours.pid)
    options.log(`created ${LINKS} links in ${createSeconds.toFixed(0)} s`)
    const driven = await requestCodes(ours.port, codes)
    const requested = residentMbOf(ours.pid)
    const memory = { started, 'links created': created, 'links requested': requested }
    return { memory, createSeconds, driven }
  } finally {
    await ours.stop()
  }
}

function verdictOfLinks({ memory, createSeconds, driven }: LinkMemory): string[] {
  const { peakMb } = memory['links requested']
  const statuses = Object.entries(driven.statuses).map(([status, count]) => `${count} × ${status}`)
  const rate = (LINKS / createSeconds).toFixed(0)
  return [
    `${rate} creates per second; responses to requests for codes: ${statuses.join(', ')}`,
    `Peak with a million links ${renderMb(peakMb)} MB (10⁶ bytes); ${resultOf(peakMb, GOAL_MB)}`,
  ]
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
