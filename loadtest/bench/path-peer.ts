// The peer of the benchmark `path`: the same Envoy, which calls the reference limiter for every
// request, and bare node:http that sends the same redirect.
import type { Stop } from '../../src/process/stop.ts'
import { reservePorts } from '../../test/dependencies/free-ports.ts'
import type { Edge } from '../../test/stack/start-edge.ts'
import { startEdge } from '../../test/stack/start-edge.ts'
import type { Stack } from '../../test/stack/start-stack.ts'
import { startFloor } from './floor-process.ts'
import { sampleResponse } from './redirect-load.ts'
import { type LimiterServer, startLimiter } from './ratelimit-server.ts'

/** The shipped limits of redirects in the reference's format; its windows are fixed. */
const rules = `domain: edge
descriptors:
  - key: route
    value: redirect
    descriptors: [{key: client, rate_limit: {unit: second, requests_per_unit: 200}}]
  - key: route
    value: unknown
    descriptors:
      - key: family
        value: ipv4
        descriptors: [{key: client, rate_limit: {unit: minute, requests_per_unit: 300}}]
`
const PORTS = 4
/** The stack's own edges have lower ordinals. */
const EDGE_ORDINAL = 9

/** The ready peer. */
export interface PathPeer {
  readonly edge: Edge
  readonly limiter: LimiterServer
  readonly upstreamPids: readonly number[]
}

/** Starts the peer; adds the functions that stop it to `closing`. `sampleUrl` is our redirect. */
export async function startPathPeer(given: {
  readonly reference: string
  readonly stack: Stack
  readonly sampleUrl: string
  readonly closing: Stop[]
}): Promise<PathPeer> {
  const { reference, stack, sampleUrl, closing } = given
  const limiter = await startLimiter([reference], {
    localCacheBytes: 0,
    rules,
    env: { LIMIT_RESPONSE_HEADERS_ENABLED: 'true' },
    wrapper: ['setpriv', '--pdeathsig', 'KILL'],
  })
  closing.push(() => limiter.stop())
  const sample = await sampleResponse(sampleUrl)
  const upstreams = stack.redirects.map(() =>
    startFloor('redirect-floor.ts', ['setpriv', '--pdeathsig', 'KILL']),
  )
  closing.push(...upstreams.map((upstream) => () => upstream.stop()))
  const replies = await Promise.all(upstreams.map((upstream) => upstream.request(sample)))
  const at = (port: number) => ({ host: '127.0.0.1', port })
  const [http = 0, metrics = 0, admin = 0, drain = 0] = await reservePorts(PORTS)
  const edge = await startEdge({
    ordinal: EDGE_ORDINAL,
    folder: stack.folder,
    baseUrl: stack.url,
    trustedHops: 1,
    ports: { http, metrics, admin, drain },
    redirectEndpoints: replies.map((each) => at((each as { port: number }).port)),
    createEndpoints: stack.creates.map(({ port }) => at(port)),
    limiterEndpoints: [at(limiter.port)],
  })
  closing.push(
    () => edge.sidecar.stop(),
    () => edge.envoy.stop(),
  )
  return { edge, limiter, upstreamPids: upstreams.map(({ pid }) => pid) }
}
