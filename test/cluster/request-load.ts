// Clients that send requests to the edge at a constant rate and count the outcomes, for the tests
// of rollouts. Connections are kept alive; a failed request is not retried.
import { Agent, request } from 'node:http'

const REQUEST_MS_MAX = 10_000
const FAILURES_KEPT_MAX = 20
const BODY_LENGTH_MAX = 1000

/** One kind of request, sent every `everyMs`. */
export interface RequestPlan {
  readonly name: string
  readonly everyMs: number
  readonly url: string
  /** Sent as JSON by POST; without it, the request is a GET. */
  readonly body?: () => object
  /** Any other status counts as a failure. */
  readonly expectedStatuses: readonly number[]
}

/** The outcomes of the requests. */
export interface LoadReport {
  /** The number of requests by outcome, such as `redirect 302`. */
  readonly counts: Readonly<Record<string, number>>
  /** The first failures, each with its time, outcome and response body. */
  readonly failures: readonly string[]
  readonly failureCount: number
}

/** Starts the requests; `stop` waits for the last responses. */
export function startLoad(plans: readonly RequestPlan[]): { stop: () => Promise<LoadReport> } {
  const agent = new Agent({ keepAlive: true, maxSockets: 32 })
  const counts = new Map<string, number>()
  const failures: string[] = []
  let failureCount = 0
  const inFlight = new Set<Promise<void>>()
  const start = (plan: RequestPlan) => {
    const sent = send(agent, plan).then(({ result, body }) => {
      const key = `${plan.name} ${result}`
      counts.set(key, (counts.get(key) ?? 0) + 1)
      if (plan.expectedStatuses.some((status) => String(status) === result)) return
      failureCount += 1
      if (failures.length < FAILURES_KEPT_MAX) {
        failures.push(`${new Date().toISOString()} ${key} ${body}`)
      }
    })
    inFlight.add(sent)
    void sent.finally(() => inFlight.delete(sent))
  }
  const timers = plans.map((plan) =>
    setInterval(() => {
      start(plan)
    }, plan.everyMs),
  )
  return {
    async stop() {
      for (const timer of timers) clearInterval(timer)
      await Promise.all(inFlight)
      agent.destroy()
      return { counts: Object.fromEntries([...counts].sort()), failures, failureCount }
    },
  }
}

interface Outcome {
  /** The status, or the error when there is no response. */
  readonly result: string
  /** The start of the response body. */
  readonly body: string
}

/** Sends one request. */
function send(agent: Agent, plan: RequestPlan): Promise<Outcome> {
  const requestBody = plan.body === undefined ? undefined : JSON.stringify(plan.body())
  const options = {
    agent,
    method: requestBody === undefined ? 'GET' : 'POST',
    headers: requestBody === undefined ? {} : { 'Content-Type': 'application/json' },
    signal: AbortSignal.timeout(REQUEST_MS_MAX),
  }
  return new Promise((resolve) => {
    const req = request(plan.url, options, (res) => {
      let body = ''
      res.setEncoding('utf8').on('data', (chunk: string) => {
        body = (body + chunk).slice(0, BODY_LENGTH_MAX)
      })
      res.on('end', () => {
        resolve({ result: String(res.statusCode), body })
      })
      res.on('error', (error) => {
        resolve({ result: 'truncated', body: error.message })
      })
    })
    req.on('error', (error) => {
      resolve({ result: error.message, body: '' })
    })
    req.end(requestBody)
  })
}
