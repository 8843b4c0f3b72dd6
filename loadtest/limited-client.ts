// k6: one client that creates as fast as it can until it gets 429, waits for `Retry-After`, and
// must then be admitted. A closed model: a single client that waits for its responses.
import { check, sleep } from 'k6'
import http from 'k6/http'
import { Counter } from 'k6/metrics'
import { createLink } from './clients.ts'
import { durationOf, trends } from './shapes.ts'
import { summariesOf } from './summaries.ts'

/** From 203.0.113.0/24; a new one in every run, so that its limit is not used up. */
const address = `203.0.113.${Math.floor(Date.now() / 1000) % 256}`

const denied = new Counter('limited_denied')
const admitted = new Counter('limited_admitted')

/** Read by k6. */
export const options = {
  summaryTrendStats: trends,
  scenarios: {
    limited_client: {
      executor: 'constant-vus',
      vus: 1,
      duration: durationOf(),
      gracefulStop: '5s',
    },
  },
  thresholds: {
    http_req_failed: ['rate==0'],
    checks: ['rate==1'],
    limited_denied: ['count>0'],
    limited_admitted: ['count>0'],
  },
}

http.setResponseCallback(http.expectedStatuses(201, 429))

/** Read by k6: one create; after a 429 also the wait and the next create. */
export default function create(): void {
  const response = createLink(address)
  if (response.status !== 429) {
    check(response, { 'created or denied': ({ status }) => status === 201 })
    return
  }
  denied.add(1)
  const waitSeconds = Number(response.headers['Retry-After'])
  const isComplete = check(response, {
    'Retry-After is a number of seconds': () => Number.isInteger(waitSeconds) && waitSeconds >= 1,
    'X-RateLimit-Remaining is 0': ({ headers }) => headers['X-Ratelimit-Remaining'] === '0',
  })
  if (!isComplete) return
  sleep(waitSeconds)
  const isAdmitted = check(createLink(address), {
    'admitted after Retry-After': ({ status }) => status === 201,
  })
  if (isAdmitted) admitted.add(1)
}

/** Read by k6. */
export const handleSummary = summariesOf('limited-client')
