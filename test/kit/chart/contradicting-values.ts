// Values of the chart that contradict one another, and the lines of the error that report them.
import type { GivenValues } from './chart-render.ts'

const memory = (limit: string | number, request?: string) => ({
  resources: { limits: { memory: limit }, ...(request && { requests: { memory: request } }) },
})

/** Values that contradict one another. */
export const contradicting: GivenValues = {
  edge: { ...memory(512), localLimits: { ceilingPerSecond: 199 }, sidecar: memory('64Mi') },
  ratelimit: {
    heapMebibytes: 384,
    rules: `domain: edge
descriptors:
  - key: route
    value: create
    rate_limit: { unit: SECOND, requests_per_unit: 1000 }
    descriptors:
      - key: client
        rate_limit: { algorithm: leaky_bucket, unit: minute, requests_per_unit: 121 }
      - { key: client, shadow_mode: true, rate_limit: { unit: second, requests_per_unit: 99 } }
      - { key: client, value: big, rate_limit: { unit: second, requests_per_unit: 99 } }
  - key: route
    value: report
    descriptors:
      - key: client
        rate_limit: { algorithm: token_bucket, unit: day, requests_per_unit: 288, burst: 11 }
  - { key: route, value: redirect, descriptors: [{ key: client, rate_limit: { unlimited: true } }] }
`,
  },
  create: { heapMebibytes: 400 },
  redirect: memory('600Mi', '128m'),
  controller: { resources: { requests: { cpu: 2 }, limits: { cpu: '1500m' } } },
  migrate: memory('200Mi', '0.25Gi'),
  pools: memory('128M', '96Mi'),
  cassandra: { bundled: { heap: '2G' } },
  cache: { bundled: { maxMemory: '1gb' } },
  counters: { bundled: { maxMemory: '128mb' } },
}

/** The lines of the error, sorted. */
export const contradictions: readonly string[] = [
  [
    'edge.localLimits.ceilingPerSecond must be at least 200,',
    'as edge.localLimits.redirectPerSecond or ratelimit.limits.redirectPerSecond: it is 199',
  ],
  [
    'edge.localLimits.createPerSecond must be at least 3,',
    'as the limit route=create,client in ratelimit.rules: it is 2',
  ],
  [
    'edge.localLimits.createTotalPerSecond must be at least 1000,',
    'as the limit route=create in ratelimit.rules: it is 400',
  ],
  [
    'edge.localLimits.reportBurst must be at least 11,',
    'as the limit route=report,client in ratelimit.rules: it is 10',
  ],
  [
    'edge.resources.limits.memory',
    'must be at least 1Mi: 512 is 512 bytes; append a unit, such as Mi',
  ],
  ['edge.sidecar.resources.limits.memory', 'must be above 64Mi, the JavaScript heap: it is 64Mi'],
  ['ratelimit.resources.limits.memory', 'must be above ratelimit.heapMebibytes, 384: it is 384Mi'],
  ['create.resources.limits.memory', 'must be above create.heapMebibytes, 400: it is 384Mi'],
  [
    'redirect.resources.requests.memory',
    'must be at least 1Mi: 128m is 0.128 bytes; append a unit, such as Mi',
  ],
  [
    'controller.resources.requests.cpu',
    'must not be above controller.resources.limits.cpu, 1500m: it is 2',
  ],
  [
    'migrate.resources.requests.memory',
    'must not be above migrate.resources.limits.memory, 200Mi: it is 0.25Gi',
  ],
  ['pools.resources.limits.memory', 'must be above 128Mi, the JavaScript heap: it is 128M'],
  [
    'cassandra.bundled.resources.limits.memory',
    'must be above cassandra.bundled.heap, 2G: it is 1536Mi',
  ],
  [
    'cache.bundled.resources.limits.memory',
    'must be above cache.bundled.maxMemory, 1gb: it is 192Mi',
  ],
  [
    'counters.bundled.resources.limits.memory',
    'must be above counters.bundled.maxMemory, 128mb: it is 128Mi',
  ],
]
  .map((halves) => `- ${halves.join(' ')}`)
  .sort()

/** Values that resemble contradictions, each of which renders. */
export const compatible: readonly (readonly [string, GivenValues])[] = [
  ['a ceiling below a burst', { edge: { localLimits: { ceilingPerSecond: 300 } } }],
  [
    'quotas, whose rates are low',
    {
      ratelimit: {
        rules: `domain: edge
descriptors:
  - key: route
    value: create
    rate_limit: { unit: hour, requests_per_unit: 1440000 }
  - key: route
    value: redirect
    descriptors:
      - { key: client, rate_limit: { unit: day, requests_per_unit: 2000000 } }
  - key: route
    value: report
    descriptors:
      - key: client
        rate_limit: { algorithm: leaky_bucket, unit: day, requests_per_unit: 288 }
`,
      },
    },
  ],
  [
    'a token bucket larger than any local limit',
    {
      ratelimit: {
        rules: `domain: edge
descriptors:
  - key: route
    value: redirect
    descriptors:
      - key: client
        rate_limit: { algorithm: token_bucket, unit: day, requests_per_unit: 2000000 }
`,
      },
    },
  ],
  ['a request of no memory', { pools: { resources: { requests: { cpu: 0, memory: '0' } } } }],
]
