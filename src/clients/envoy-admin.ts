// A client of Envoy's admin interface: readiness, load and drain. Every call has a deadline, and
// none throws: an Envoy that has exited is also a result.
import { type EnvoyAdmin, type NoResponse, SERVICES, type ListenerLoad } from '../drain/envoy.ts'

const CALL_MS_MAX = 1000
/** Selects the connection managers of the public listeners, by their `stat_prefix`. */
const LOAD_FILTER = '^http\\.edge[^.]*\\.downstream_(cx_active|rq_active|cx_total)$'
const MEMBERS_FILTER = `^cluster\\.(${SERVICES.join('|')})\\.membership_healthy$`
const MEMBER_LINE = /^cluster\.(\w+)\.membership_healthy: [1-9]\d*$/gm
const LOAD_LINE = /^http\.edge[^.]*\.downstream_(\w+): (\d+)$/gm

interface AdminResponse {
  readonly status: number
  readonly body: string
}

/** Creates a client of the admin interface at `url`, an origin. */
export function createEnvoyAdmin(url: string): EnvoyAdmin {
  const send = async (
    method: 'GET' | 'POST',
    path: string,
  ): Promise<AdminResponse | NoResponse> => {
    try {
      const signal = AbortSignal.timeout(CALL_MS_MAX)
      const response = await fetch(`${url}${path}`, { method, signal, redirect: 'manual' })
      return { status: response.status, body: await response.text() }
    } catch (error) {
      return isConnectionRefused(error) ? 'exited' : 'unresponsive'
    }
  }
  return {
    async readReadiness() {
      const response = await send('GET', '/ready')
      if (typeof response === 'string') return response
      if (response.status === 200) return 'ready'
      return response.body.trim() === 'DRAINING' ? 'draining' : 'not-ready'
    },
    async quit() {
      await send('POST', '/quitquitquit')
    },
    async startDrain() {
      for (const path of ['/healthcheck/fail', '/drain_listeners?graceful']) {
        const response = await send('POST', path)
        if (typeof response === 'string') return response
        if (response.status !== 200) return 'unresponsive'
      }
      return 'started'
    },
    async findUnreachable() {
      const response = await send('GET', `/stats?filter=${encodeURIComponent(MEMBERS_FILTER)}`)
      if (typeof response === 'string') return response
      return response.status === 200 ? parseUnreachable(response.body) : 'unresponsive'
    },
    async readListenerLoad() {
      const response = await send('GET', `/stats?filter=${encodeURIComponent(LOAD_FILTER)}`)
      if (typeof response === 'string') return response
      return (
        (response.status === 200 ? parseListenerLoad(response.body) : undefined) ?? 'unresponsive'
      )
    },
  }
}

/**
 * Sums the lines of `/stats` over all public listeners; `undefined` if one of the three statistics
 * is missing: a missing statistic is not zero load.
 */
export function parseListenerLoad(stats: string): ListenerLoad | undefined {
  const sums = new Map<string, number>()
  for (const [, name = '', count] of stats.matchAll(LOAD_LINE)) {
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

/** The services without a pod according to `/stats`; a service that is not listed has none. */
export function parseUnreachable(stats: string): readonly string[] {
  const reachable = new Set([...stats.matchAll(MEMBER_LINE)].map(([, name]) => name))
  return SERVICES.filter((name) => !reachable.has(name))
}

function isConnectionRefused(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined
  return (cause as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED'
}
