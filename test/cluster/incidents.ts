// The incidents of the runbook test: how to cause each, the alerts that must fire, and the commands
// of the runbooks that repair the release.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openUnfinishedRequests } from '../kit/http/unfinished-requests.ts'
import { createAuthority } from '../kit/ratelimit/grpc-certificates.ts'
import { kubectl } from './cluster.ts'
import { createCodeSecret } from './code-pools.ts'
import {
  disableLink,
  deletePool,
  emptyPool,
  firstPodOf,
  revokeVerb,
  suspendAll,
  createPool,
  storeCertificate,
  suspendOneRepeatedly,
  withPools,
} from './faults.ts'
import { command, type Incident, nothingToCleanUp, restoreRelease } from './incident.ts'
import { limitIncidents } from './limit-incidents.ts'
import { listIncidents } from './list-incidents.ts'
import { createLink, FULL_NAME, previousRevision, RELEASE, upgradeRelease } from './release.ts'

const LARGER_POOL = { lowWater: 4000, target: 5000 }
const [CERTIFICATE, HOST] = ['expires-soon', 'short.test']
/** About 28 kB of Envoy's memory each; opened slowly, so that few reconnect at the same time. */
const CROWD = { connections: 5000, everyMs: 2 }
const inNamespace = ['--namespace', RELEASE] as const
const upgradeTo = 'helm -n $NS upgrade RELEASE CHART --reuse-values --set'

const deletePod = (pod: () => Promise<string>) =>
  command('kubectl -n $NS delete pod POD', async () => ({ names: { POD: await pod() } }))
const replaceStore = deletePod(() => Promise.resolve(`${FULL_NAME}-cassandra-0`))
const restartCache = command('kubectl -n $NS rollout restart statefulset/$R-cache')
const replacePod = deletePod(() => firstPodOf('redirect'))

const burnRateIncidents: readonly Incident[] = [
  {
    title: 'a release responds to every request with an error',
    alerts: [
      ...['CurtailRedirectBurnFast', 'CurtailRedirectBurnSlow'],
      ...['CurtailCreateBurnFast', 'CurtailCreateBurnSlow'],
    ],
    breakRelease: async () => {
      await upgradeRelease('--set', 'image.tag=bad')
      return nothingToCleanUp
    },
    remedy: [
      command('helm -n $NS rollback RELEASE REVISION', async () => {
        return { names: { REVISION: await previousRevision() } }
      }),
    ],
  },
]

const storeIncidents: readonly Incident[] = [
  {
    title: 'the cache hangs, and a link is disabled during that time',
    alerts: ['CurtailCacheUnavailable', 'CurtailCacheInvalidationStuck'],
    breakRelease: async ({ edge }) => {
      const code = await createLink(edge, 'https://example.com/disabled')
      const resume = await suspendAll([`${FULL_NAME}-cache-0`])
      await disableLink(code)
      return resume
    },
    remedy: [restartCache],
  },
  {
    title: 'Cassandra and the cache hang',
    alerts: ['CurtailStoreUnavailable', 'CurtailStaleRedirects'],
    breakRelease: () => suspendAll([`${FULL_NAME}-cassandra-0`, `${FULL_NAME}-cache-0`]),
    remedy: [replaceStore, restartCache],
  },
  {
    title: 'Cassandra hangs for 3 s in every 4 s',
    alerts: ['CurtailStoreDegraded'],
    breakRelease: () =>
      suspendOneRepeatedly(`${FULL_NAME}-cassandra-0`, { suspendMs: 3000, runMs: 1000 }),
    remedy: [replaceStore],
  },
]

const edgeIncidents: readonly Incident[] = [
  {
    title: "the edge's certificate expires soon",
    alerts: ['CurtailCertificateExpiring'],
    breakRelease: async ({ runner }) => {
      const authority = createAuthority('authority')
      await storeCertificate(CERTIFICATE, authority.issue([HOST], 1))
      const tls = ['edge.tls.enabled=true', `edge.tls.existingSecret=${CERTIFICATE}`]
      await upgradeRelease(...tls.flatMap((value) => ['--set', value]))
      const renewed = authority.issue([HOST], 90)
      await writeFile(join(runner.folder, 'tls.crt'), renewed.cert)
      await writeFile(join(runner.folder, 'tls.key'), renewed.key)
      return async () => {
        await upgradeRelease()
        await kubectl('delete', 'secret', CERTIFICATE, ...inNamespace)
      }
    },
    remedy: [
      command(
        'kubectl -n $NS create secret tls SECRET --cert=tls.crt --key=tls.key' +
          ' --dry-run=client -o yaml | kubectl apply -f -',
        () => Promise.resolve({ names: { SECRET: CERTIFICATE } }),
      ),
    ],
  },
  {
    title: 'too many connections exhaust the heap limit of the edge pods',
    alerts: ['CurtailEdgeOverloaded'],
    breakRelease: async ({ edge }) => {
      const small = ['edge.heapMebibytes=64', 'edge.requestHeadersTimeout=60s']
      await upgradeRelease(...small.flatMap((value) => ['--set', value]))
      const { hostname: host } = new URL(edge)
      const closeCrowd = openUnfinishedRequests({ host, port: 80 }, CROWD)
      return async () => {
        closeCrowd()
        await upgradeRelease()
      }
    },
    remedy: [command(`${upgradeTo} edge.replicas=COUNT`)],
  },
]

const podIncidents: readonly Incident[] = [
  {
    title: 'the redirect Deployment is scaled to 0',
    alerts: ['CurtailNoHealthyPods'],
    breakRelease: async () => {
      await kubectl('scale', `deployment/${FULL_NAME}-redirect`, '--replicas=0', ...inNamespace)
      return nothingToCleanUp
    },
    remedy: [restoreRelease],
  },
  {
    title: 'a redirect pod hangs',
    alerts: ['CurtailPodNotScraped'],
    breakRelease: async () => suspendAll([await firstPodOf('redirect')]),
    remedy: [replacePod],
  },
  {
    title: 'a redirect pod gets too little CPU time',
    alerts: ['CurtailEventLoopSlow'],
    breakRelease: async () =>
      suspendOneRepeatedly(await firstPodOf('redirect'), { suspendMs: 300, runMs: 100 }),
    remedy: [replacePod],
  },
]

const poolIncidents: readonly Incident[] = [
  {
    title: "the controller's Role is deleted, and a pool runs empty",
    alerts: ['CurtailControllerWithoutLeader', 'CurtailPoolRunningOut', 'CurtailPoolEmpty'],
    breakRelease: async () => {
      await createPool('used-up')
      await kubectl('delete', 'role', `${FULL_NAME}-controller`, ...inNamespace)
      const stop = await emptyPool('used-up')
      return async () => {
        await stop()
        await deletePool('used-up')
      }
    },
    remedy: [restoreRelease],
  },
  {
    title: "the controller's Role lacks a verb",
    alerts: ['CurtailReconcileErrors'],
    breakRelease: async () => {
      await createPool('needs-refill')
      await revokeVerb('jobs', 'create')
      await withPools((pools) => pools.patch('needs-refill', LARGER_POOL))
      return () => deletePool('needs-refill')
    },
    remedy: [restoreRelease],
  },
  {
    title: 'the code secret of a pool has changed',
    alerts: ['CurtailRefillFailing', 'CurtailPoolDegraded'],
    breakRelease: async ({ runner }) => {
      await createCodeSecret('other-code-secret')
      await runner.saveCodeSecret('other-code-secret')
      await createPool('other-codes', { name: 'other-code-secret', key: 'secret' })
      await createCodeSecret('other-code-secret')
      await withPools((pools) => pools.patch('other-codes', LARGER_POOL))
      return async () => {
        await deletePool('other-codes')
        await kubectl('delete', 'secret', 'other-code-secret', ...inNamespace)
      }
    },
    remedy: [
      command(
        'kubectl -n $NS create secret generic SECRET --from-file=secret=code-secret' +
          ' --dry-run=client -o yaml | kubectl apply -f -',
        () => Promise.resolve({ names: { SECRET: 'other-code-secret' } }),
      ),
    ],
  },
]

/** All incidents in order: burn-rate alerts first, before another incident spends error budget. */
export const incidents: readonly Incident[] = [
  ...burnRateIncidents,
  ...storeIncidents,
  ...limitIncidents,
  ...listIncidents,
  ...edgeIncidents,
  ...podIncidents,
  ...poolIncidents,
]
