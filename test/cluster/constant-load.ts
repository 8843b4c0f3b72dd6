// Clients that ask the edge at a steady pace, whatever it answers, and keep count: what tests hold
// against a rollout. Connections are kept alive, and nothing is tried again.
import { Agent, request } from 'node:http'

const ASK_MS_MAX = 10_000
const FAULTS_KEPT_MAX = 20
const TEXT_LENGTH_MAX = 1000

/** One kind of request, sent every `everyMs`. */
export interface Asking {
  readonly name: string
  readonly everyMs: number
  readonly url: string
  /** Sent as JSON by POST; without it, the request is a GET. */
  readonly body?: () => object
  /** Statuses that are right. */
  readonly right: readonly number[]
}

/** What became of the requests. */
export interface LoadReport {
  /** How many had each outcome, such as `redirect 302`. */
  readonly counts: Readonly<Record<string, number>>
  /** Those that were not right, the first of them in words. */
  readonly faults: readonly string[]
  readonly faultCount: number
}

/** Starts asking; `stop` waits for the last answers. */
export function startLoad(askings: readonly Asking[]): { stop: () => Promise<LoadReport> } {
  const agent = new Agent({ keepAlive: true, maxSockets: 32 })
  const counts = new Map<string, number>()
  const faults: string[] = []
  let faultCount = 0
  const open = new Set<Promise<void>>()
  const begin = (asking: Asking) => {
    const asked = ask(agent, asking).then(({ outcome, text }) => {
      const key = `${asking.name} ${outcome}`
      counts.set(key, (counts.get(key) ?? 0) + 1)
      if (asking.right.some((status) => String(status) === outcome)) return
      faultCount += 1
      if (faults.length < FAULTS_KEPT_MAX) faults.push(`${new Date().toISOString()} ${key} ${text}`)
    })
    open.add(asked)
    void asked.finally(() => open.delete(asked))
  }
  const timers = askings.map((asking) =>
    setInterval(() => {
      begin(asking)
    }, asking.everyMs),
  )
  return {
    async stop() {
      for (const timer of timers) clearInterval(timer)
      await Promise.all(open)
      agent.destroy()
      return { counts: Object.fromEntries([...counts].sort()), faults, faultCount }
    },
  }
}

/** Its status or why there is none, and the beginning of what was said. */
interface Outcome {
  readonly outcome: string
  readonly text: string
}

/** Sends one request. */
function ask(agent: Agent, { url, body }: Asking): Promise<Outcome> {
  const text = body === undefined ? undefined : JSON.stringify(body())
  const options = {
    agent,
    method: text === undefined ? 'GET' : 'POST',
    headers: text === undefined ? {} : { 'Content-Type': 'application/json' },
    signal: AbortSignal.timeout(ASK_MS_MAX),
  }
  return new Promise((resolve) => {
    const asking = request(url, options, (res) => {
      let said = ''
      res.setEncoding('utf8').on('data', (chunk: string) => {
        said = (said + chunk).slice(0, TEXT_LENGTH_MAX)
      })
      res.on('end', () => {
        resolve({ outcome: String(res.statusCode), text: said })
      })
      res.on('error', (error) => {
        resolve({ outcome: 'cut', text: error.message })
      })
    })
    asking.on('error', (error) => {
      resolve({ outcome: error.message, text: '' })
    })
    asking.end(text)
  })
}
