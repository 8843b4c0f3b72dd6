// A fake API server whose CodePools the real controller reconciles; the test completes the refill
// Jobs, immediately or later.
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { type FakeKubeApi, startFakeKubeApi } from './fake-kube-api.ts'
import type { FakeObject } from './fake-kube-store.ts'
import { callFake } from './kube-watcher.ts'
import { PoolKeeper } from './pool-keeper.ts'

/** Paths of the collections in the namespace `n`. */
export const PATHS = {
  pools: '/apis/curtail.dev/v1alpha1/namespaces/n/codepools',
  jobs: '/apis/batch/v1/namespaces/n/jobs',
  pods: '/api/v1/namespaces/n/pods',
  events: '/apis/events.k8s.io/v1/namespaces/n/events',
} as const

type JobOutcome = 'Complete' | 'Failed'
type Status = Readonly<Record<string, unknown>> & {
  readonly conditions?: readonly { type: string; status: string; reason: string; message: string }[]
}

/** The API server, the controller and the pools. */
export class PoolWorld extends PoolKeeper {
  readonly fake: FakeKubeApi
  /** Called with each new Job. */
  onJob: (job: FakeObject) => void = () => undefined
  readonly #close: () => void

  constructor(fake: FakeKubeApi, isConnected: boolean) {
    const metrics = createMetrics()
    const { api, close } = callFake(fake, metrics)
    super(api, metrics, isConnected)
    this.fake = fake
    this.#close = close
    fake.store.listen(({ type, collection, object }) => {
      if (collection === PATHS.jobs && type === 'ADDED') this.onJob(object)
    })
  }

  /** Creates a CodePool. */
  createPool(name: string, spec: object = {}): FakeObject {
    return this.fake.store.create(PATHS.pools, {
      apiVersion: 'curtail.dev/v1alpha1',
      kind: 'CodePool',
      metadata: { name },
      spec: {
        ...{ lowWater: 2000, target: 5000, paused: false },
        codeSecret: { name: 'secret', key: 'secret' },
        ...spec,
      },
    })
  }

  jobs(): FakeObject[] {
    return this.fake.store.list(PATHS.jobs)
  }

  /** The value of an environment variable of a Job's container. */
  envOf(job: FakeObject, name: string): string | undefined {
    const { template } = job['spec'] as {
      template: { spec: { containers: { env: { name: string; value: string }[] }[] } }
    }
    return template.spec.containers[0]?.env.find((one) => one.name === name)?.value
  }

  /** Sets the outcome of a Job; a completed Job has filled its pool. */
  finishJob(job: FakeObject, outcome: JobOutcome = 'Complete', reason = ''): void {
    const pool = this.envOf(job, 'CODE_POOL') ?? ''
    const row = this.rows.get(pool)
    const blocks = Math.ceil(Number(this.envOf(job, 'POOL_TARGET')) / 1000)
    if (outcome === 'Complete') this.setRow(pool, { minted: (row?.claimed ?? 0) + blocks })
    const lastTransitionTime = new Date().toISOString()
    this.fake.store.patch(PATHS.jobs, job.metadata.name, {
      status: {
        conditions: [{ type: outcome, status: 'True', reason, message: '', lastTransitionTime }],
      },
    })
  }

  statusOf(name: string): Status {
    return (this.fake.store.get(PATHS.pools, name)?.['status'] ?? {}) as Status
  }

  /** `status reason` of a condition. */
  condition(name: string, type: string): string {
    const found = this.statusOf(name).conditions?.find((one) => one.type === type)
    return found === undefined ? '' : `${found.status} ${found.reason}`
  }

  /** Reasons of the events emitted so far, in order. */
  events(): string[] {
    return this.fake.store.history
      .filter(({ collection, type }) => collection === PATHS.events && type === 'ADDED')
      .map(({ object }) => String(object['reason']))
  }

  /** The number of writes so far. */
  writes(): number {
    return this.fake.calls.filter(({ method }) => method !== 'GET').length
  }

  override async stop(): Promise<void> {
    await super.stop()
    this.#close()
    await this.fake.stop()
  }
}

/** Starts the API server and the controller; without `isConnected` the store is not connected. */
export async function startPoolWorld(isConnected = true): Promise<PoolWorld> {
  return new PoolWorld(await startFakeKubeApi(), isConnected)
}
