// k6: a client that tries codes to find links must be stopped, also for codes that exist, while
// another one goes on following links.
import { check } from 'k6'
import { scenario } from 'k6/execution'
import http from 'k6/http'
import { Counter } from 'k6/metrics'
import { addressOf, checkRedirect, codeAt, resolveCode, type Links, createLinks } from './clients.ts'
import { durationOf, given, readyUsers, redirectThresholds, trends } from './shapes.ts'
import { summariesOf } from './summaries.ts'

const TRIES_PER_SECOND = 50
/** What the rules let one IPv6 network look up in vain, each minute (`envoy/rate-limits.yaml`). */
const unknownPerMinute = Number(__ENV['UNKNOWN_PER_MINUTE'] ?? 60)
/** For answers under way when the limit was reached, and a limiter that was late. */
const SLACK = 1.5

const CODE_CHARACTERS = 'abcdefghijklmnopqrstuvwxyz'

const seen = new Counter('walker_seen')
const refused = new Counter('walker_refused')

/** Read by k6. */
export const options = {
  summaryTrendStats: trends,
  scenarios: {
    walker: {
      executor: 'constant-arrival-rate',
      rate: TRIES_PER_SECOND,
      timeUnit: '1s',
      duration: durationOf(),
      preAllocatedVUs: readyUsers(TRIES_PER_SECOND), // for answers that take up to a second
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
      exec: 'follow',
    },
  },
  thresholds: {
    dropped_iterations: ['count==0'],
    'checks{scenario:walker}': ['rate==1'],
    walker_refused: ['count>0'],
    walker_seen: [`count<${Math.ceil(unknownPerMinute * (1 + minutesOf()) * SLACK)}`],
    ...redirectThresholds('bystander'),
  },
}

http.setResponseCallback(http.expectedStatuses(302, 404, 429))

/** What the functions of this run are given. */
interface Walk extends Links {
  /** Where the walker's address is. */
  readonly network: string
}

/** Read by k6. */
export function setup(): Walk {
  // Another network in every run: what the last run used up does not count. It is chosen here, as
  // users that begin in different seconds must be one walker.
  const network = (Math.floor(Date.now() / 1000) & 0xffff).toString(16)
  return { ...createLinks(), network }
}

/** Read by k6: tries one code. */
export function walk({ network }: Walk): void {
  const response = resolveCode(newCode(), `2001:db8:${network}::1`)
  check(response, { 'unknown or refused': ({ status }) => status === 404 || status === 429 })
  if (response.status === 404) seen.add(1)
  if (response.status === 429) refused.add(1)
}

/** Read by k6: follows a link, as somebody else. */
export function follow(links: Links): void {
  const at = scenario.iterationInTest
  checkRedirect(resolveCode(codeAt(links, at), addressOf(at)))
}

/** Read by k6. */
export const handleSummary = summariesOf('code-walker')

/** Nine letters: as long as an alias may be, and never a generated code. */
function newCode(): string {
  const letter = () => CODE_CHARACTERS[Math.floor(Math.random() * CODE_CHARACTERS.length)] ?? 'a'
  return Array.from({ length: 9 }, letter).join('')
}

/** How long the run is; of `1h30m` and the like all parts. */
function minutesOf(): number {
  const minutes: Readonly<Record<string, number>> = { h: 60, m: 1, s: 1 / 60 }
  const parts = [...durationOf().matchAll(/(\d+)([hms])/g)]
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * (minutes[unit ?? ''] ?? 0), 0)
}
