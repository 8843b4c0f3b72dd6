// The shapes of load that all k6 scenarios share, and the environment variables that change them.
// The arrival rate does not depend on the responses (an open model). Iterations that k6 cannot
// start count as dropped and fail the run.
import type { Threshold } from 'k6/options'

/** The settings of a run, from the environment of k6 (`-e NAME=value`). */
export const given = {
  /** The origin of the edge. */
  baseUrl: (__ENV['BASE_URL'] ?? 'http://127.0.0.1:8080').replace(/\/$/, ''),
  /** The API key of all creates, for a service that requires one. */
  apiKey: __ENV['API_KEY']?.trim(),
  /** One of `shapes`. */
  shape: __ENV['SHAPE'] ?? 'smoke',
  /** Requests per second; overrides the shape. */
  rate: numberOf('RATE'),
  /** Duration such as `10m`; overrides the shape. */
  duration: __ENV['DURATION'],
  /** Number of client addresses; the edge must trust one proxy. */
  clients: numberOf('CLIENTS') ?? 10_000,
  /** Links that a run creates before it starts; unused with `CODES_FILE`. */
  links: numberOf('LINKS') ?? 200,
  /** Virtual users that are started before a scenario; overrides the scenario's number. */
  users: numberOf('USERS'),
  /** The maximum of virtual users of one scenario. */
  usersMax: numberOf('USERS_MAX') ?? 2000,
  /** The maximum p99 of redirects. */
  redirectMsMax: numberOf('REDIRECT_MS_MAX') ?? 100,
  /** The maximum p99 of creates. */
  createMsMax: numberOf('CREATE_MS_MAX') ?? 500,
  /** The folder for the summaries. */
  outFolder: __ENV['OUT_FOLDER'] ?? '.',
} as const

/** A scenario of k6 with an arrival-rate executor. */
export interface Arrivals {
  readonly executor: 'constant-arrival-rate' | 'ramping-arrival-rate'
  readonly preAllocatedVUs: number
  readonly maxVUs: number
  readonly [setting: string]: unknown
}

interface Shape {
  readonly perSecond: number
  readonly duration: string
  /** Stages instead of a constant rate: the level as a fraction of `perSecond`. */
  readonly stages?: readonly (readonly [level: number, duration: string])[]
}

const spike = [
  [1 / 3, '1m'],
  [1, '5s'],
  [1, '1m'],
  [1 / 3, '5s'],
  [1 / 3, '2m'],
] as const

const shapes: Readonly<Record<string, Shape>> = {
  /** Checks that the service works. */
  smoke: { perSecond: 30, duration: '3s' },
  /** 100 million new links a month, with a hundred redirects each. */
  average: { perSecond: 4000, duration: '10m' },
  peak: { perSecond: 12_000, duration: '5m' },
  /** From the average to the peak within 5 s, and back. */
  spike: { perSecond: 12_000, duration: '', stages: spike },
  /** Shows leaks. */
  soak: { perSecond: 4000, duration: '4h' },
}

/** The statistics of durations in the summaries. */
export const trends: string[] = ['med', 'p(95)', 'p(99)', 'p(99.9)', 'max']

/** The share of creates in the requests of a shape. */
export const CREATES_SHARE = 0.01

/** A scenario with this share of the requests of the configured shape. Throws if it is unknown. */
export function arrivals(share: number, scenario: { exec?: string } = {}): Arrivals {
  const shape = shapes[given.shape]
  if (shape === undefined) {
    const allowed = Object.keys(shapes).join(', ')
    throw new Error(`SHAPE is ${given.shape}: allowed are ${allowed}`)
  }
  const rateOf = (level: number) =>
    Math.max(1, Math.round((given.rate ?? shape.perSecond) * share * level))
  const users = { preAllocatedVUs: usersFor(rateOf(1)), maxVUs: given.usersMax }
  const rest = { ...users, timeUnit: '1s', gracefulStop: '5s', ...scenario }
  if (shape.stages === undefined || given.duration !== undefined) {
    const duration = given.duration ?? shape.duration
    return { executor: 'constant-arrival-rate', rate: rateOf(1), duration, ...rest }
  }
  const stages = shape.stages.map(([level, duration]) => ({ target: rateOf(level), duration }))
  return { executor: 'ramping-arrival-rate', startRate: rateOf(1 / 3), stages, ...rest }
}

/**
 * The number of virtual users to start before the load: `wanted` or the configured number. k6 drops
 * an arrival if no user is idle, even if it then starts more of them.
 */
export function readyUsers(wanted: number): number {
  return Math.min(given.usersMax, given.users ?? wanted)
}

/** The duration of the configured shape, in k6's format. */
export function durationOf(): string {
  const stages = shapes[given.shape]?.duration ?? ''
  return given.duration ?? (stages === '' ? '4m' : stages)
}

/** The thresholds of redirects: 99.95 % are correct, and p99 is within its limit. */
export function redirectThresholds(scenario: string): Record<string, Threshold[]> {
  return {
    [`checks{scenario:${scenario}}`]: ['rate>0.9995'],
    [`http_req_duration{scenario:${scenario}}`]: [`p(99)<${given.redirectMsMax}`],
  }
}

/** The thresholds of creates: 99.9 % are correct, and p99 is within its limit. */
export function createThresholds(scenario: string): Record<string, Threshold[]> {
  return {
    [`checks{scenario:${scenario}}`]: ['rate>0.999'],
    [`http_req_duration{scenario:${scenario}}`]: [`p(99)<${given.createMsMax}`],
  }
}

/** The thresholds of every run: k6 sent the whole load, and at most 0.05 % of requests failed. */
export const wholeLoad: Record<string, Threshold[]> = {
  dropped_iterations: ['count==0'],
  http_req_failed: ['rate<0.0005'],
}

/** The users to start before the load, for responses within 50 ms. */
function usersFor(perSecond: number): number {
  return readyUsers(10 + Math.ceil(perSecond * 0.05))
}

function numberOf(name: string): number | undefined {
  const setting = __ENV[name]
  if (setting === undefined || setting === '') return undefined
  const value = Number(setting)
  if (value >= 0) return value
  throw new Error(`${name} is ${setting}: a number of 0 or more is allowed`)
}
