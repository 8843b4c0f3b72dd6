// What may happen to a release, as the test of the runbooks does it: how each fault comes about,
// which alerts tell of it, and which lines of their pages a reader runs.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gatherCrowd } from '../component/crowd.ts'
import { createAuthority } from '../component/grpc-certificates.ts'
import { getObject, kubectl } from './cluster.ts'
import { makeCodeSecret } from './code-pools.ts'
import {
  askLimitersFor,
  type CleanUp,
  disableLink,
  dropPool,
  emptyPool,
  firstOf,
  forbidJobs,
  freezeAll,
  makePool,
  storeCertificate,
  stutterOne,
  withPools,
} from './faults.ts'
import type { Following, Reader } from './reader.ts'
import { FULL_NAME, podsOf, RELEASE, shorten, upgradeRelease } from './release.ts'

const MORE = { lowWater: 4000, target: 5000 }
const [CERTIFICATE, HOST] = ['ends-soon', 'short.test']
/** Some 28 kB of Envoy's each; of those that are cut off not too many come back at once. */
const CROWD = { connections: 5000, everyMs: 2 }
const upgradeTo = 'helm -n $NS upgrade RELEASE CHART --reuse-values --set'

/** Where it happens. */
export interface Scene {
  readonly edge: string
  readonly reader: Reader
}

/** A line of a page; `names` are for the reader to know. */
interface Deed {
  readonly line: string
  readonly how?: () => Promise<Following>
}

/** What happens. */
export interface Incident {
  readonly what: string
  readonly alerts: readonly string[]
  /** Breaks it. */
  readonly happens: (scene: Scene) => Promise<CleanUp>
  readonly does: readonly Deed[]
}

const at = ['--namespace', RELEASE] as const
const nothing: CleanUp = () => Promise.resolve()
const deed = (line: string, how?: Deed['how']): Deed => ({ line, ...(how && { how }) })
const upgradeAsItIs = deed(
  'helm -n $NS upgrade RELEASE CHART --reuse-values --server-side=true --force-conflicts',
)
const replaceStore = deed('kubectl -n $NS delete pod $R-cassandra-0')
const restartCache = deed('kubectl -n $NS rollout restart statefulset/$R-cache')
const replacePod = deed('kubectl -n $NS delete pod POD', async () => {
  return { names: { POD: await firstOf('redirect') } }
})

const burns: readonly Incident[] = [
  {
    what: 'a release answers every request wrongly',
    alerts: [
      ...['CurtailRedirectBurnFast', 'CurtailRedirectBurnSlow'],
      ...['CurtailCreateBurnFast', 'CurtailCreateBurnSlow'],
    ],
    happens: async () => {
      await upgradeRelease('--set', 'image.tag=bad')
      return nothing
    },
    does: [deed('helm -n $NS rollback RELEASE')],
  },
]

const ofStores: readonly Incident[] = [
  {
    what: 'the cache hangs, and a link is disabled meanwhile',
    alerts: ['CurtailCacheUnavailable', 'CurtailCacheInvalidationStuck'],
    happens: async ({ edge }) => {
      const code = await shorten(edge, 'https://example.com/disabled')
      const thaw = await freezeAll([`${FULL_NAME}-cache-0`])
      await disableLink(code)
      return thaw
    },
    does: [restartCache],
  },
  {
    what: 'Cassandra and the cache hang',
    alerts: ['CurtailStoreUnavailable', 'CurtailStaleRedirects'],
    happens: () => freezeAll([`${FULL_NAME}-cassandra-0`, `${FULL_NAME}-cache-0`]),
    does: [replaceStore, restartCache],
  },
  {
    what: 'Cassandra stops for seconds, again and again',
    alerts: ['CurtailStoreDegraded'],
    happens: () => stutterOne(`${FULL_NAME}-cassandra-0`, { stopMs: 3000, goMs: 1000 }),
    does: [replaceStore],
  },
]

const ofLimits: readonly Incident[] = [
  {
    what: 'Redis of the counters hangs',
    alerts: ['CurtailLimiterFallback'],
    happens: () => freezeAll([`${FULL_NAME}-counters-0`]),
    does: [deed('kubectl -n $NS rollout restart statefulset/$R-counters')],
  },
  {
    what: 'every limiter hangs',
    alerts: ['CurtailLimiterUnavailable'],
    happens: async () => {
      const thaw = await freezeAll(await podsOf('ratelimit'))
      return async () => {
        await thaw()
        await upgradeRelease()
      }
    },
    does: [deed(`${upgradeTo} ratelimit.replicas=4`)],
  },
  {
    what: 'the rules have a fault',
    alerts: ['CurtailRulesRejected'],
    happens: async ({ reader }) => {
      const named = ['configmap', `${FULL_NAME}-ratelimit`, ...at]
      const { data } = await getObject<{ data: Readonly<Record<string, string>> }>(...named)
      const rules = data['rate-limits.yaml'] ?? ''
      await writeFile(join(reader.folder, 'rate-limits.yaml'), rules)
      const text = `${rules}\nnonsense: true\n`
      const patch = JSON.stringify({ data: { 'rate-limits.yaml': text } })
      await kubectl('patch', ...named, '--type=merge', '-p', patch)
      return nothing
    },
    does: [
      deed(
        'helm -n $NS upgrade RELEASE CHART --reuse-values' +
          ' --set-file ratelimit.rules=rate-limits.yaml --server-side=true --force-conflicts',
      ),
    ],
  },
]

const ofDomains: readonly Incident[] = [
  {
    what: 'a program asks the limiters about a domain without rules',
    alerts: ['CurtailDomainWithoutRules'],
    happens: () => askLimitersFor('elsewhere'),
    does: [],
  },
]

const ofEdge: readonly Incident[] = [
  {
    what: 'the certificate of the edge ends soon',
    alerts: ['CurtailCertificateExpiring'],
    happens: async ({ reader }) => {
      const authority = createAuthority('authority')
      await storeCertificate(CERTIFICATE, authority.issue([HOST], 1))
      const tls = ['edge.tls.enabled=true', `edge.tls.existingSecret=${CERTIFICATE}`]
      await upgradeRelease(...tls.flatMap((value) => ['--set', value]))
      const renewed = authority.issue([HOST], 90)
      await writeFile(join(reader.folder, 'tls.crt'), renewed.cert)
      await writeFile(join(reader.folder, 'tls.key'), renewed.key)
      return async () => {
        await upgradeRelease()
        await kubectl('delete', 'secret', CERTIFICATE, ...at)
      }
    },
    does: [
      deed(
        'kubectl -n $NS create secret tls SECRET --cert=tls.crt --key=tls.key' +
          ' --dry-run=client -o yaml | kubectl apply -f -',
        () => Promise.resolve({ names: { SECRET: CERTIFICATE } }),
      ),
    ],
  },
  {
    what: 'very many connections hold what little memory the edges are given',
    alerts: ['CurtailEdgeOverloaded'],
    happens: async ({ edge }) => {
      const small = ['edge.heapMebibytes=64', 'edge.requestHeadersTimeout=60s']
      await upgradeRelease(...small.flatMap((value) => ['--set', value]))
      const { hostname: host } = new URL(edge)
      const leave = gatherCrowd({ host, port: 80 }, CROWD)
      return async () => {
        leave()
        await upgradeRelease()
      }
    },
    does: [deed(`${upgradeTo} edge.replicas=4`)],
  },
]

const ofPods: readonly Incident[] = [
  {
    what: 'no redirect pod is wanted',
    alerts: ['CurtailNoHealthyPods'],
    happens: async () => {
      await kubectl('scale', `deployment/${FULL_NAME}-redirect`, '--replicas=0', ...at)
      return nothing
    },
    does: [deed(`${upgradeTo} redirect.replicas=2 --server-side=true --force-conflicts`)],
  },
  {
    what: 'a redirect pod hangs',
    alerts: ['CurtailPodNotScraped'],
    happens: async () => freezeAll([await firstOf('redirect')]),
    does: [replacePod],
  },
  {
    what: 'a redirect pod gets too little of its processor',
    alerts: ['CurtailEventLoopSlow'],
    happens: async () => stutterOne(await firstOf('redirect'), { stopMs: 300, goMs: 100 }),
    does: [replacePod],
  },
]

const ofPools: readonly Incident[] = [
  {
    what: 'the Role of the controller is gone, and a pool is used up',
    alerts: ['CurtailControllerWithoutLeader', 'CurtailPoolRunningOut', 'CurtailPoolEmpty'],
    happens: async () => {
      await makePool('used-up')
      await kubectl('delete', 'role', `${FULL_NAME}-controller`, ...at)
      const stop = await emptyPool('used-up')
      return async () => {
        await stop()
        await dropPool('used-up')
      }
    },
    does: [upgradeAsItIs],
  },
  {
    what: 'the Role of the controller lacks a verb',
    alerts: ['CurtailReconcileErrors'],
    happens: async () => {
      await makePool('wants-more')
      await forbidJobs('create')
      await withPools((words) => words.change('wants-more', MORE))
      return () => dropPool('wants-more')
    },
    does: [upgradeAsItIs],
  },
  {
    what: 'the code secret of a pool is another',
    alerts: ['CurtailRefillFailing', 'CurtailPoolDegraded'],
    happens: async ({ reader }) => {
      await makeCodeSecret('of-codes')
      await reader.keepCodeSecret('of-codes')
      await makePool('other-codes', { name: 'of-codes', key: 'secret' })
      await makeCodeSecret('of-codes')
      await withPools((words) => words.change('other-codes', MORE))
      return async () => {
        await dropPool('other-codes')
        await kubectl('delete', 'secret', 'of-codes', ...at)
      }
    },
    does: [
      deed(
        'kubectl -n $NS create secret generic SECRET --from-file=secret=code-secret' +
          ' --dry-run=client -o yaml | kubectl apply -f -',
        () => Promise.resolve({ names: { SECRET: 'of-codes' } }),
      ),
    ],
  },
]

/** All, in the order in which they happen: burns first, while nothing has burnt. */
export const incidents: readonly Incident[] = [
  ...burns,
  ...ofStores,
  ...ofLimits,
  ...ofDomains,
  ...ofEdge,
  ...ofPods,
  ...ofPools,
]
