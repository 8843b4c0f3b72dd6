// k6: one client that creates as fast as it can, expects to be refused, waits as long as it is told
// and must then be let in. Not an open model: it is one client, and it is told to wait.
import { check, sleep } from 'k6'
import http from 'k6/http'
import { Counter } from 'k6/metrics'
import { createLink } from './clients.ts'
import { durationOf, trends } from './shapes.ts'
import { summariesOf } from './summaries.ts'

/** One of 203.0.113.0/24, another one in every run: what the last run used up does not count. */
const address = `203.0.113.${Math.floor(Date.now() / 1000) % 256}`

const refused = new Counter('limited_refused')
const letIn = new Counter('limited_let_in')

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
    limited_refused: ['count>0'],
    limited_let_in: ['count>0'],
  },
}

http.setResponseCallback(http.expectedStatuses(201, 429))

/** Read by k6: creates until it is refused, then waits and is let in. */
export default function createAgain(): void {
  const response = createLink(address)
  if (response.status !== 429) {
    check(response, { 'created or refused': ({ status }) => status === 201 })
    return
  }
  refused.add(1)
  const waitSeconds = Number(response.headers['Retry-After'])
  const isTold = check(response, {
    'told when to come back': () => Number.isInteger(waitSeconds) && waitSeconds >= 1,
    'nothing remains': ({ headers }) => headers['X-Ratelimit-Remaining'] === '0',
  })
  if (!isTold) return
  sleep(waitSeconds)
  const isLetIn = check(createLink(address), { 'let in when told': ({ status }) => status === 201 })
  if (isLetIn) letIn.add(1)
}

/** Read by k6. */
export const handleSummary = summariesOf('limited-client')
