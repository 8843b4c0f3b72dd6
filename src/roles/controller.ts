// Keeps CodePools full: all replicas watch CodePools and refill Jobs, and the leader creates a Job
// when a level is low. The controller has no code secret and generates no codes. With ADS_PORT it
// also sends the rules of RateLimitPolicies to limiters. With LIST_PODS_SELECTOR it annotates the
// pods that mount operator lists.
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { createAdminApp } from '../http/admin/app.ts'
import { actionRoutes } from '../http/admin/post-action.ts'
import { bareApp } from '../http/bare-app.ts'
import { listen } from '../http/serve.ts'
import { adminPortSetting } from '../http/settings.ts'
import { type ClusterAccess, openAccess } from '../kube/access.ts'
import { createKubeApi, type KubeApi } from '../kube/api.ts'
import { createLevels } from '../kube/code-pool/levels.ts'
import { createPoolController, type PoolController } from '../kube/code-pool/pool-controller.ts'
import { createTemplateFile, refillTemplateFile } from '../kube/code-pool/template-file.ts'
import { createEventRecorder, type EventRecorder } from '../kube/events.ts'
import { createElection, type Election } from '../kube/lease.ts'
import { openListController } from '../kube/list-sync/list-controller.ts'
import { listSyncDependentSettings, listSyncSettings } from '../kube/list-sync/settings.ts'
import {
  createPolicyController,
  type PolicyController,
} from '../kube/rate-limit-policy/policy-controller.ts'
import {
  policyDependentSettings,
  policyOptionsOf,
  policySettings,
} from '../kube/rate-limit-policy/settings.ts'
import type { CompiledVersion } from '../kube/rate-limit-policy/rules-port.ts'
import { reportReads } from '../kube/report-reads.ts'
import { runControllers } from '../kube/run-controllers.ts'
import { fence } from '../kube/fence.ts'
import { systemScheduler } from '../kube/scheduler.ts'
import { controllerSettings } from '../kube/settings.ts'
import { createTransport } from '../kube/transport.ts'
import { type ConfigOf, dependentSettings } from '../config/config.ts'
import { openProcess, type Process, startProcess } from '../process/open-process.ts'
import { defineRole } from '../process/role.ts'
import { logLevelSetting } from '../config/settings.ts'
import { StoreError } from '../resilience/store-error.ts'
import { createPoolReporter } from '../pools/pool-reporter.ts'
import { openCassandra } from '../stores/cassandra/client.ts'
import { readPools as readAllPools } from '../stores/cassandra/code-store.ts'
import { ownPool } from '../stores/cassandra/pool-owner.ts'
import { cassandraSettings, cassandraDependentSettings } from '../stores/cassandra/settings.ts'

const settings = {
  ADMIN_PORT: adminPortSetting,
  ...controllerSettings,
  ...policySettings,
  ...listSyncSettings,
  ...cassandraSettings,
  LOG_LEVEL: logLevelSetting,
} as const

type Config = ConfigOf<typeof settings>

/** With port 0, the system selects a free port, so both may be 0. */
const distinctPorts = dependentSettings(
  { ADS_PORT: settings.ADS_PORT, ADMIN_PORT: settings.ADMIN_PORT },
  ({ ADS_PORT: port, ADMIN_PORT: adminPort }) =>
    port === adminPort && port !== 0
      ? [`ADS_PORT and ADMIN_PORT must be different: both are ${port}`]
      : [],
)

/** `controller`. */
export const role = defineRole({
  name: 'controller',
  about:
    'Refills the pools of its CodePools. One replica is the leader, the others are on standby.\n' +
    'The leader also sends RateLimitPolicies to limiters (ADS_PORT), and makes pods load\n' +
    'changed operator lists (LIST_PODS_SELECTOR). In a pod, only REFILL_POD_TEMPLATE,\n' +
    'CASSANDRA_CONTACT_POINTS and CASSANDRA_LOCAL_DC are required.',
  settings,
  dependent: [
    ...cassandraDependentSettings,
    ...policyDependentSettings,
    listSyncDependentSettings,
    distinctPorts,
  ],
  files: [refillTemplateFile],
  run: async ({ config }) => {
    const access = await openAccess(config)
    const opened = openProcess('controller', config, ['store'])
    const context: Context = { ...opened, config }
    return startProcess(context, () => start(context, access))
  },
})

interface Context extends Process {
  readonly config: Config
}

async function start(context: Context, access: ClusterAccess): Promise<void> {
  const { config, log, metrics, health, cleanups } = context
  let isStuck = () => false
  const adminPort = await openAdmin(context, () => isStuck())
  const transport = createTransport(access)
  cleanups.push(() => {
    transport.close()
    return Promise.resolve()
  })
  const api = createKubeApi({ transport, scheduler: systemScheduler, metrics })
  const { namespace } = access
  const identity = `${hostname()}_${randomUUID()}`
  const election = createElection({
    api,
    namespace,
    name: config.LEASE_NAME,
    identity,
    scheduler: systemScheduler,
    random: Math.random,
    wallMs: Date.now,
    metrics,
    log,
  })
  const { promise: synced, resolve } = Promise.withResolvers<undefined>()
  const onSynced = () => {
    health.markReady()
    resolve(undefined)
  }
  // Each has its own recorder: many events for one kind of object do not displace the others.
  const openDeps = () => openControllerDeps(context, { api, election, identity })
  const pools = openPools(context, { ...openDeps(), namespace, onSynced })
  const policies = openPolicies(context, { ...openDeps(), namespace })
  const lists = openListController(context, { api: fence(election.isLeading, api), namespace })
  const controllers = [pools, policies, lists].filter((one) => one !== undefined)
  isStuck = () => election.isStuck() || controllers.some((controller) => controller.isStuck())
  runControllers(context, { controllers, election, synced })
  const namespaces = config.WATCH_NAMESPACES ?? [namespace]
  log.info({ adminPort, namespaces, identity }, 'ready')
}

/** Serves probes and metrics, and returns the port; a stuck controller fails its liveness probe. */
async function openAdmin(context: Context, isStuck: () => boolean): Promise<number> {
  const { config, log, metrics, health, cleanups } = context
  const onError = (err: unknown) => {
    log.error({ err }, 'connection not accepted')
  }
  const admin = { port: config.ADMIN_PORT, setting: 'ADMIN_PORT', drainMsMax: 500, onError }
  const listener = await listen(admin)
  cleanups.push(() => listener.drain())
  const app = bareApp()
  app.get('/livez', (_req, res, next) => {
    if (isStuck()) res.status(503).json({ status: 'stuck' })
    else next()
  })
  // Without a token, it admits only connections from this pod's loopback, such as those of the
  // commands that report changes of operator lists.
  const api = actionRoutes({ log, baseUrl: '' })
  app.use(createAdminApp({ health, metrics, log, baseUrl: '', token: undefined, api }))
  listener.attach({ baseUrl: '', app })
  return listener.port
}

interface ControllerDeps {
  /** Rejects writes unless this replica leads. */
  readonly api: KubeApi
  readonly isLeading: () => boolean
  readonly events: EventRecorder
}

/** What each controller uses. */
function openControllerDeps(
  { metrics, log }: Context,
  given: { readonly api: KubeApi; readonly election: Election; readonly identity: string },
): ControllerDeps {
  const { isLeading } = given.election
  const api = fence(isLeading, given.api)
  const events = createEventRecorder({
    api,
    controller: 'curtail.dev/controller',
    instance: given.identity,
    nowMs: systemScheduler.nowMs,
    wallMs: Date.now,
    metrics,
    log,
    mayWrite: isLeading,
  })
  return { api, isLeading, events }
}

/** Opens the code store and the pod template; calls `onChange` with the pools that are affected. */
function openSources(context: Context, onChange: (pools: readonly string[] | 'all') => void) {
  const { config, log, metrics, health, cleanups } = context
  const onError = (task: string) => (err: unknown) => {
    metrics.backgroundFailures.inc({ task })
    if (err instanceof StoreError) log.warn({ task, reason: err.message }, 'store call failed')
    else log.warn({ err, task }, 'background task failed')
  }
  const stopping = new AbortController()
  const cassandra = openCassandra({
    config,
    metrics,
    log,
    onState: (state) => {
      health.note('store', state)
    },
    signal: stopping.signal,
  })
  cleanups.push(
    () => cassandra.close(),
    () => {
      stopping.abort()
      return Promise.resolve()
    },
  )
  const readPools = () => readAllPools(cassandra)
  const pools = createPoolReporter({ readPools, marksOf: (row) => row, metrics, nowMs: Date.now })
  const levels = createLevels({
    async readPools() {
      const rows = await readPools()
      pools.record(rows)
      return rows
    },
    onChange,
    onError: onError('read-pools'),
    connected: cassandra.ready,
    nowMs: () => performance.now(),
    metrics,
  })
  const template = createTemplateFile({
    path: config.REFILL_POD_TEMPLATE,
    onChange: () => {
      onChange('all')
    },
    onError: onError('read-template'),
  })
  return { cassandra, levels, template }
}

/** Creates the controller of CodePools, and opens its sources other than the API server. */
function openPools(
  context: Context,
  given: ControllerDeps & { readonly namespace: string; readonly onSynced: () => void },
): PoolController {
  const { config, log, metrics, cleanups } = context
  const { isLeading, namespace, onSynced } = given
  const { cassandra, levels, template } = openSources(context, (pools) => {
    controller.onPoolsChanged(pools)
  })
  const controller = createPoolController({
    ...given,
    ownPool: (claim) => (isLeading() ? ownPool(cassandra, claim) : Promise.resolve(false)),
    namespaces: config.WATCH_NAMESPACES ?? [namespace],
    template: template.get,
    levels,
    ownerPrefix: config.CLUSTER_NAME,
    wallMs: Date.now,
    scheduler: systemScheduler,
    random: Math.random,
    metrics,
    log,
    onState: reportReads(context, () => {
      if (controller.hasSynced()) onSynced()
    }),
  })
  const sources = [levels.start(), template.start()]
  cleanups.push(...sources.map((background) => () => background.stop()))
  return controller
}

/** Creates the controller of RateLimitPolicies; `undefined` if they are not watched. */
function openPolicies(
  context: Context,
  given: ControllerDeps & { readonly namespace: string },
): PolicyController | undefined {
  const { config, log, metrics, health } = context
  const options = policyOptionsOf(config)
  if (options === undefined) return undefined
  const { grants, secret, ...listener } = options
  const { namespace, ...deps } = given
  return createPolicyController({
    ...deps,
    grants,
    store: secret === undefined ? undefined : { secret: { namespace, name: secret }, serialize },
    // Loaded only here: few installations need it.
    openServer: async (on) => {
      const { openAdsServer } = await import('../grpc/ads/ads-server.ts')
      return openAdsServer({ ...listener, ...on, log, metrics })
    },
    wallMs: Date.now,
    scheduler: systemScheduler,
    random: Math.random,
    metrics,
    log,
    onState: reportReads(context, () => undefined),
    onPort: (state) => {
      health.note('adsPort', state)
    },
  })
}

/** Serializes a version as limiters receive it. */
async function serialize(version: CompiledVersion): Promise<Buffer> {
  const { serializeVersion } = await import('../grpc/ads/serialize-version.ts')
  return serializeVersion(version)
}
