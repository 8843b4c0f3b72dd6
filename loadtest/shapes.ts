// The shapes of load that all k6 scenarios share, and the environment that changes them. Arrivals
// come at their rate whatever the service does (an open model); what k6 itself could not send
// counts as dropped and fails the run.
import type { Threshold } from 'k6/options'

/** What an operator may say by the environment of k6 (`-e NAME=value`). */
export const given = {
  /** Origin of the edge. */
  baseUrl: (__ENV['BASE_URL'] ?? 'http://127.0.0.1:8080').replace(/\/$/, ''),
  /** One of `shapes`. */
  shape: __ENV['SHAPE'] ?? 'smoke',
  /** Requests a second in place of the shape's. */
  rate: numberOf('RATE'),
  /** How long, such as `10m`, in place of the shape's. */
  duration: __ENV['DURATION'],
  /** Clients with an address of their own, believed by one trusted proxy. */
  clients: numberOf('CLIENTS') ?? 10_000,
  /** Links that a run makes before it begins, or 0 where `CODES_FILE` names some. */
  links: numberOf('LINKS') ?? 200,
  /** Virtual users of one scenario that are ready before it begins, in place of its own number. */
  users: numberOf('USERS'),
  /** Most virtual users of one scenario. */
  usersMax: numberOf('USERS_MAX') ?? 2000,
  /** Time in which 99 of 100 redirects must be answered. */
  redirectMsMax: numberOf('REDIRECT_MS_MAX') ?? 100,
  /** Time in which 99 of 100 creates must be answered. */
  createMsMax: numberOf('CREATE_MS_MAX') ?? 500,
  /** Folder of the summaries. */
  outFolder: __ENV['OUT_FOLDER'] ?? '.',
} as const

/** How k6 makes requests come, in its own words. */
export interface Arrivals {
  readonly executor: 'constant-arrival-rate' | 'ramping-arrival-rate'
  readonly preAllocatedVUs: number
  readonly maxVUs: number
  readonly [setting: string]: unknown
}

interface Shape {
  readonly perSecond: number
  readonly duration: string
  /** Rates by stages in place of one rate: the part of `perSecond`, and for how long. */
  readonly stages?: readonly (readonly [part: number, duration: string])[]
}

const spike = [
  [1 / 3, '1m'],
  [1, '5s'],
  [1, '1m'],
  [1 / 3, '5s'],
  [1 / 3, '2m'],
] as const

const shapes: Readonly<Record<string, Shape>> = {
  /** Whether it works at all. */
  smoke: { perSecond: 30, duration: '3s' },
  /** 100 million links a month, each followed a hundred times. */
  average: { perSecond: 4000, duration: '10m' },
  peak: { perSecond: 12_000, duration: '5m' },
  /** From the average to the peak within 5 s and back. */
  spike: { perSecond: 12_000, duration: '', stages: spike },
  /** What leaks shows after hours. */
  soak: { perSecond: 4000, duration: '4h' },
}

/** Which figures of times the summaries name. */
export const trends: string[] = ['med', 'p(95)', 'p(99)', 'p(99.9)', 'max']

/** Of a shape's requests, how many are creates: one in a hundred. */
export const CREATES_SHARE = 0.01

/**
 * One scenario of the shape that the environment names, with this part of its requests. Throws
 * where there is no such shape.
 */
export function arrivals(part: number, scenario: { exec?: string } = {}): Arrivals {
  const shape = shapes[given.shape]
  if (shape === undefined) {
    const allowed = Object.keys(shapes).join(', ')
    throw new Error(`SHAPE is ${given.shape}: allowed are ${allowed}`)
  }
  const rateOf = (share: number) =>
    Math.max(1, Math.round((given.rate ?? shape.perSecond) * part * share))
  const users = { preAllocatedVUs: usersFor(rateOf(1)), maxVUs: given.usersMax }
  const rest = { ...users, timeUnit: '1s', gracefulStop: '5s', ...scenario }
  if (shape.stages === undefined || given.duration !== undefined) {
    const duration = given.duration ?? shape.duration
    return { executor: 'constant-arrival-rate', rate: rateOf(1), duration, ...rest }
  }
  const stages = shape.stages.map(([share, duration]) => ({ target: rateOf(share), duration }))
  return { executor: 'ramping-arrival-rate', startRate: rateOf(1 / 3), stages, ...rest }
}

/**
 * Users that are ready before the start: so many, unless the environment says how many. k6 drops
 * an arrival that finds none idle, also where it makes more of them for the next one.
 */
export function readyUsers(wanted: number): number {
  return Math.min(given.usersMax, given.users ?? wanted)
}

/** How long the shape that the environment names lasts, as k6 writes it. */
export function durationOf(): string {
  const stages = shapes[given.shape]?.duration ?? ''
  return given.duration ?? (stages === '' ? '4m' : stages)
}

/** What a scenario of redirects must keep: right and in time, 99.95 of 100. */
export function redirectThresholds(scenario: string): Record<string, Threshold[]> {
  return {
    [`checks{scenario:${scenario}}`]: ['rate>0.9995'],
    [`http_req_duration{scenario:${scenario}}`]: [`p(99)<${given.redirectMsMax}`],
  }
}

/** What a scenario of creates must keep: 99.9 of 100. */
export function createThresholds(scenario: string): Record<string, Threshold[]> {
  return {
    [`checks{scenario:${scenario}}`]: ['rate>0.999'],
    [`http_req_duration{scenario:${scenario}}`]: [`p(99)<${given.createMsMax}`],
  }
}

/** What every run must keep: the load was offered whole, and no request failed. */
export const wholeLoad: Record<string, Threshold[]> = {
  dropped_iterations: ['count==0'],
  http_req_failed: ['rate<0.0005'],
}

/** Users that are ready before the start, for answers that take up to 50 ms. */
function usersFor(perSecond: number): number {
  return readyUsers(10 + Math.ceil(perSecond * 0.05))
}

function numberOf(name: string): number | undefined {
  const text = __ENV[name]
  if (text === undefined || text === '') return undefined
  const value = Number(text)
  if (value >= 0) return value
  throw new Error(`${name} is ${text}: a number of 0 or more is allowed`)
}
