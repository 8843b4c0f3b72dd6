// k6: a client that tries codes to find links must be denied, also for codes that exist, while
// other clients are redirected as before.
import { check } from 'k6'
import { scenario } from 'k6/execution'
import http from 'k6/http'
import { Counter } from 'k6/metrics'
import {
  addressOf,
  checkRedirect,
  codeAt,
  createLinks,
  type Links,
  resolveCode,
} from './clients.ts'
import { durationOf, given, readyUsers, redirectThresholds, trends } from './shapes.ts'
import { summariesOf } from './summaries.ts'

const TRIES_PER_SECOND = 50
/** Misses per minute that the rules allow one IPv6 network (`envoy/rate-limits.yaml`). */
const missesPerMinute = Number(__ENV['UNKNOWN_PER_MINUTE'] ?? 60)
/** For requests in flight when the limit is reached, and for limiter calls that time out. */
const SLACK = 1.5

const CODE_CHARACTERS = 'abcdefghijklmnopqrstuvwxyz'

const missed = new Counter('walker_missed')
const denied = new Counter('walker_denied')

/** Read by k6. */
export const options = {
  summaryTrendStats: trends,
  scenarios: {
    walker: {
      executor: 'constant-arrival-rate',
      rate: TRIES_PER_SECOND,
      timeUnit: '1s',
      duration: durationOf(),
      preAllocatedVUs: readyUsers(TRIES_PER_SECOND), // for responses within a second
      maxVUs: given.usersMax,
      exec: 'walk',
    },
    bystander: {
      executor: 'constant-arrival-rate',
      rate: 5,
      timeUnit: '1s',
      duration: durationOf(),
      preAllocatedVUs: readyUsers(10),
      maxVUs: given.usersMax,
      exec: 'redirect',
    },
  },
  thresholds: {
    dropped_iterations: ['count==0'],
    'checks{scenario:walker}': ['rate==1'],
    walker_denied: ['count>0'],
    walker_missed: [`count<${Math.ceil(missesPerMinute * (1 + minutesOf()) * SLACK)}`],
    ...redirectThresholds('bystander'),
  },
}

http.setResponseCallback(http.expectedStatuses(302, 404, 429))

/** The links of the run and the walker's network. */
interface Walk extends Links {
  /** The third group of the walker's IPv6 address, in hexadecimal. */
  readonly network: string
}

/** Read by k6. */
export function setup(): Walk {
  // A new network in every run, so that its limit is not used up. All virtual users share it,
  // because they are one client.
  const network = (Math.floor(Date.now() / 1000) & 0xffff).toString(16)
  return { ...createLinks(), network }
}

/** Read by k6: tries one code. */
export function walk({ network }: Walk): void {
  const response = resolveCode(newCode(), `2001:db8:${network}::1`)
  check(response, { 'not found or denied': ({ status }) => status === 404 || status === 429 })
  if (response.status === 404) missed.add(1)
  if (response.status === 429) denied.add(1)
}

/** Read by k6: resolves an existing code as another client. */
export function redirect(links: Links): void {
  const at = scenario.iterationInTest
  checkRedirect(resolveCode(codeAt(links, at), addressOf(at)))
}

/** Read by k6. */
export const handleSummary = summariesOf('code-walker')

/** Nine letters: a valid alias, and longer than generated codes. */
function newCode(): string {
  const letter = () => CODE_CHARACTERS[Math.floor(Math.random() * CODE_CHARACTERS.length)] ?? 'a'
  return Array.from({ length: 9 }, letter).join('')
}

/** The duration of the run in minutes, for durations such as `1h30m`. */
function minutesOf(): number {
  const minutes: Readonly<Record<string, number>> = { h: 60, m: 1, s: 1 / 60 }
  const spans = [...durationOf().matchAll(/(\d+)([hms])/g)]
  return spans.reduce((sum, [, count, unit]) => sum + Number(count) * (minutes[unit ?? ''] ?? 0), 0)
}
