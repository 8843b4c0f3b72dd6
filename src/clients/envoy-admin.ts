// A client of Envoy's admin port: is it ready, whom does it serve, and the order to drain. Every
// call has a deadline, and none of them throws: an Envoy that is gone is an answer too.
import { type EnvoyAdmin, type NoAnswer, SERVICES, type Served } from '../drain/envoy.ts'

const CALL_MS_MAX = 1000
/** The connection managers of the public listeners, by their `stat_prefix`. */
const STATISTICS = '^http\\.edge[^.]*\\.downstream_(cx_active|rq_active|cx_total)$'
const MEMBERS = `^cluster\\.(${SERVICES.join('|')})\\.membership_healthy$`
const MEMBER = /^cluster\.(\w+)\.membership_healthy: [1-9]\d*$/gm
const STATISTIC = /^http\.edge[^.]*\.downstream_(\w+): (\d+)$/gm

interface Answer {
  readonly status: number
  readonly text: string
}

/** Makes the client of the admin port at `url`, an origin. */
export function createEnvoyAdmin(url: string): EnvoyAdmin {
  const ask = async (method: 'GET' | 'POST', path: string): Promise<Answer | NoAnswer> => {
    try {
      const signal = AbortSignal.timeout(CALL_MS_MAX)
      const answer = await fetch(`${url}${path}`, { method, signal, redirect: 'manual' })
      return { status: answer.status, text: await answer.text() }
    } catch (error) {
      return isRefused(error) ? 'gone' : 'silent'
    }
  }
  return {
    async askReady() {
      const answer = await ask('GET', '/ready')
      if (typeof answer === 'string') return answer
      if (answer.status === 200) return 'ready'
      return answer.text.trim() === 'DRAINING' ? 'draining' : 'not-ready'
    },
    async end() {
      await ask('POST', '/quitquitquit')
    },
    async beginDrain() {
      for (const order of ['/healthcheck/fail', '/drain_listeners?graceful']) {
        const answer = await ask('POST', order)
        if (typeof answer === 'string') return answer
        if (answer.status !== 200) return 'silent'
      }
      return 'begun'
    },
    async findUnreached() {
      const answer = await ask('GET', `/stats?filter=${encodeURIComponent(MEMBERS)}`)
      if (typeof answer === 'string') return answer
      return answer.status === 200 ? parseUnreached(answer.text) : 'silent'
    },
    async readServed() {
      const answer = await ask('GET', `/stats?filter=${encodeURIComponent(STATISTICS)}`)
      if (typeof answer === 'string') return answer
      return (answer.status === 200 ? parseServed(answer.text) : undefined) ?? 'silent'
    },
  }
}

/**
 * Adds up the lines of `/stats` over all public listeners; `undefined` where one of the three
 * figures is not there: nothing counted is not the same as nobody served.
 */
export function parseServed(text: string): Served | undefined {
  const sums = new Map<string, number>()
  for (const [, name = '', count] of text.matchAll(STATISTIC)) {
    sums.set(name, (sums.get(name) ?? 0) + Number(count))
  }
  const [connections, requests, accepted] = ['cx_active', 'rq_active', 'cx_total'].map((name) =>
    sums.get(name),
  )
  if (connections === undefined || requests === undefined || accepted === undefined) {
    return undefined
  }
  return { connections, requests, accepted }
}

/** Which services have no pod by the lines of `/stats`; one that is not told of has none. */
export function parseUnreached(text: string): readonly string[] {
  const reached = new Set([...text.matchAll(MEMBER)].map(([, name]) => name))
  return SERVICES.filter((name) => !reached.has(name))
}

function isRefused(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined
  return (cause as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED'
}
