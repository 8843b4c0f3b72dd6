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
  /** Called after each expected response, with the bodies of the request and of the response. */
  readonly onResponse?: (sent: object, body: string) => void
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
  const addFailure = (failure: string) => {
    failureCount += 1
    if (failures.length < FAILURES_KEPT_MAX) {
      failures.push(`${new Date().toISOString()} ${failure}`)
    }
  }
  const start = (plan: RequestPlan) => {
    const requestBody = plan.body?.()
    const sent = send(agent, plan, requestBody)
      .then(({ result, body }) => {
        const key = `${plan.name} ${result}`
        counts.set(key, (counts.get(key) ?? 0) + 1)
        const isExpected = plan.expectedStatuses.some((status) => String(status) === result)
        if (isExpected) plan.onResponse?.(requestBody ?? {}, body)
        else addFailure(`${key} ${body}`)
      })
      .catch((error: unknown) => {
        addFailure(`${plan.name} ${String(error)}`)
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

/** Sends one request; without a body, a GET. */
function send(agent: Agent, plan: RequestPlan, body?: object): Promise<Outcome> {
  const options = {
    agent,
    method: body === undefined ? 'GET' : 'POST',
    headers: body === undefined ? {} : { 'Content-Type': 'application/json' },
    signal: AbortSignal.timeout(REQUEST_MS_MAX),
  }
  return new Promise((resolve) => {
    const req = request(plan.url, options, (res) => {
      let text = ''
      res.setEncoding('utf8').on('data', (chunk: string) => {
        text = (text + chunk).slice(0, BODY_LENGTH_MAX)
      })
      res.on('end', () => {
        resolve({ result: String(res.statusCode), body: text })
      })
      res.on('error', (error) => {
        resolve({ result: 'truncated', body: error.message })
      })
    })
    req.on('error', (error) => {
      resolve({ result: error.message, body: '' })
    })
    req.end(body === undefined ? undefined : JSON.stringify(body))
  })
}
