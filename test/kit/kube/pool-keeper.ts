// The real controller of CodePools with in-memory pools, as a client of a fake or a real API
// server.
import type { Problem } from '../../../src/codes/observed-state.ts'
import type { KubeApi } from '../../../src/kube/api.ts'
import type { PoolOwnership } from '../../../src/kube/code-pool/apply.ts'
import { createLevels, type Levels, type StoredPool } from '../../../src/kube/code-pool/levels.ts'
import { createPoolController } from '../../../src/kube/code-pool/pool-controller.ts'
import { parseTemplate, type PodTemplate } from '../../../src/kube/code-pool/refill-jobs.ts'
import { createEventRecorder } from '../../../src/kube/events.ts'
import { fence } from '../../../src/kube/fence.ts'
import { systemScheduler } from '../../../src/kube/scheduler.ts'
import type { Metrics } from '../../../src/telemetry/metrics.ts'
import { quietLog } from './kube-watcher.ts'

/** A pod template as the chart renders it. */
export const TEMPLATE = `
metadata: { labels: { app: refill } }
spec:
  serviceAccountName: refill
  containers:
    - name: refill
      image: curtail:1
      env: [{ name: CODE_POOL, value: none }, { name: LOG_LEVEL, value: info }]
      resources: { requests: { cpu: 50m } }
  volumes: [{ name: code-secret, secret: { secretName: none, defaultMode: 288 } }]
`

/** A controller that leads while `isLeader` is true. */
export class PoolKeeper {
  readonly rows = new Map<string, StoredPool>()
  readonly metrics: Metrics
  readonly levels: Levels
  template: PodTemplate | Problem = parseTemplate(TEMPLATE)
  isStoreUnavailable = false
  /** The number of reads of the store so far. */
  reads = 0
  /** Resolves once the store is connected; the constructor resolves it if `isConnected`. */
  readonly connected = Promise.withResolvers<undefined>()
  /** The log of the controller. */
  readonly logged: (readonly [level: string, msg: string, fields: object])[] = []
  isLeader = true
  readonly #stopping = new AbortController()
  readonly #stopped: Promise<unknown>[] = []

  /** Starts the controller, which watches the namespace `n`, and leads. */
  constructor(plain: KubeApi, metrics: Metrics, isConnected = true) {
    if (isConnected) this.connected.resolve(undefined)
    this.metrics = metrics
    const api = fence(() => this.isLeader, plain)
    this.levels = createLevels({
      readPools: () => {
        this.reads++
        return this.isStoreUnavailable
          ? Promise.reject(new Error('unavailable'))
          : Promise.resolve([...this.rows.values()])
      },
      onChange: (pools) => {
        controller.onPoolsChanged(pools)
      },
      onError: () => undefined,
      connected: this.connected.promise,
      nowMs: () => performance.now(),
      metrics,
      everyMs: 20,
    })
    const controller = createPoolController({
      api,
      ownPool: (claim) => Promise.resolve(this.#own(claim)),
      namespaces: ['n'],
      template: () => this.template,
      levels: this.levels,
      events: createEventRecorder({
        api,
        controller: 'curtail.dev/controller',
        instance: 'i',
        nowMs: systemScheduler.nowMs,
        wallMs: Date.now,
        metrics,
        log: quietLog,
        mayWrite: () => this.isLeader,
      }),
      ownerPrefix: '',
      wallMs: Date.now,
      scheduler: systemScheduler,
      random: Math.random,
      metrics,
      log: { ...quietLog, info: this.#record('info'), warn: this.#record('warn') },
      onState: () => undefined,
    })
    const { signal } = this.#stopping
    const reading = this.levels.start()
    this.#stopped.push(controller.watch(signal), controller.lead(signal))
    signal.addEventListener('abort', () => {
      this.#stopped.push(reading.stop())
    })
  }

  setRow(pool: string, row: Partial<StoredPool>): void {
    const none = { pool, minted: 0, claimed: 0, owner: null, lowWater: null, target: null }
    this.rows.set(pool, { ...none, ...this.rows.get(pool), ...row })
  }

  /** Stops the controller. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all(this.#stopped)
  }

  #record(level: string) {
    return (fields: object | string, msg = '') => {
      if (typeof fields === 'string') this.logged.push([level, fields, {}])
      else this.logged.push([level, msg, fields])
    }
  }

  #own({ pool, owner, replaces, lowWater, target }: PoolOwnership): boolean {
    const row = this.rows.get(pool)
    if (row === undefined || ![owner, replaces].includes(row.owner)) return false
    this.setRow(pool, { owner, lowWater, target })
    return true
  }
}
