// The real controller of CodePools over pools of codes in memory, at whatever API server it is
// given.
import type { Problem } from '../../../src/codes/observed-state.ts'
import type { KubeApi } from '../../../src/kube/api.ts'
import type { PoolClaim } from '../../../src/kube/code-pool/apply.ts'
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
  /** Reads of the store so far. */
  reads = 0
  /** The connection to the store; the constructor makes it unless it is asked not to. */
  readonly connected = Promise.withResolvers<undefined>()
  /** What the controller logged: level, message, fields. */
  readonly logged: (readonly [level: string, msg: string, fields: object])[] = []
  isLeader = true
  readonly #ending = new AbortController()
  readonly #ended: Promise<unknown>[] = []

  /** Starts to watch the namespace `n`, and to lead. */
  constructor(plain: KubeApi, metrics: Metrics, isConnected = true) {
    if (isConnected) this.connected.resolve(undefined)
    this.metrics = metrics
    const api = fence(() => this.isLeader, plain)
    this.levels = createLevels({
      readPools: () => {
        this.reads++
        return this.isStoreUnavailable
          ? Promise.reject(new Error('away'))
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
      log: { ...quietLog, info: this.#note('info'), warn: this.#note('warn') },
      onState: () => undefined,
    })
    const { signal } = this.#ending
    const reading = this.levels.start()
    this.#ended.push(controller.watch(signal), controller.lead(signal))
    signal.addEventListener('abort', () => {
      this.#ended.push(reading.stop())
    })
  }

  setRow(pool: string, row: Partial<StoredPool>): void {
    const none = { pool, minted: 0, claimed: 0, owner: null, lowWater: null, target: null }
    this.rows.set(pool, { ...none, ...this.rows.get(pool), ...row })
  }

  /** Ends the controller. */
  async stop(): Promise<void> {
    this.#ending.abort()
    await Promise.all(this.#ended)
  }

  #note(level: string) {
    return (fields: object | string, msg = '') => {
      if (typeof fields === 'string') this.logged.push([level, fields, {}])
      else this.logged.push([level, msg, fields])
    }
  }

  #own({ pool, owner, replaces, lowWater, target }: PoolClaim): boolean {
    const row = this.rows.get(pool)
    if (row === undefined || ![owner, replaces].includes(row.owner)) return false
    this.setRow(pool, { owner, lowWater, target })
    return true
  }
}
