// Candidates for one Lease on an API server whose requests and responses have delays that the test
// sets, with a clock that the test advances. Records the times with more than one leader.
import { createKubeApi } from '../../../src/kube/api.ts'
import { KubeError } from '../../../src/kube/kube-error.ts'
import { createElection, type Election, type LeaseOptions } from '../../../src/kube/lease.ts'
import type { KubeResponse, KubeRequest } from '../../../src/kube/transport.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { FakeKubeStore, FakeApiError } from './fake-kube-store.ts'
import { createFakeScheduler, type FakeScheduler } from '../fake-scheduler.ts'
import { quietLog } from './kube-watcher.ts'

/** The delays of one call; `Infinity` loses the request or its response. */
export interface Delays {
  readonly requestMs?: number
  readonly responseMs?: number
  /** The error status of the response, although the server applied the request. */
  readonly failsWith?: number
}

type DelaysOf = (call: { readonly method: string; readonly nth: number }) => Delays

/** Delays of the first calls, and those of all others. */
export function calls(first: readonly Delays[], others: Delays = {}): DelaysOf {
  return ({ nth }) => first[nth - 1] ?? others
}

/** A candidate, and its reports with the time in ms: `won 0`, `lost 12000`. */
export interface Candidate {
  readonly election: Election
  readonly reported: string[]
  /** The warnings in its log. */
  readonly warnings: string[]
  /** The value of the leadership metric. */
  readonly gauge: () => Promise<number | undefined>
  /** The calls so far. */
  readonly calls: { readonly method: string; readonly atMs: number }[]
  /** Stops to acquire or renew the Lease; does not release it. */
  readonly stop: () => void
}

const COLLECTION = '/apis/coordination.k8s.io/v1/namespaces/n/leases'
const STEP_MS = 100

/** The Lease, its candidates and their clock. */
export class SlowLeases {
  readonly clock: FakeScheduler = createFakeScheduler()
  readonly store = new FakeKubeStore()
  /** The times at which several candidates led, with their names. */
  readonly overlaps: string[] = []
  /** The system clock of the candidates, which no decision may use. */
  wallMs: () => number = () => this.clock.nowMs()
  readonly #candidates = new Map<string, Candidate>()

  /** Adds a candidate, which acquires the Lease and then renews it. */
  add(identity: string, delaysOf: DelaysOf = () => ({}), times?: LeaseOptions['times']): Candidate {
    const metrics = createMetrics()
    const calls: { method: string; atMs: number }[] = []
    const warnings: string[] = []
    const warn = (_fields: unknown, msg = '') => {
      warnings.push(msg)
    }
    const send = (request: KubeRequest) => {
      calls.push({ method: request.method, atMs: this.clock.nowMs() })
      return this.#send(request, delaysOf({ method: request.method, nth: calls.length }))
    }
    const transport = { send, host: () => 'fake' }
    const election = createElection({
      api: createKubeApi({ transport, scheduler: this.clock, metrics }),
      ...{ namespace: 'n', name: 'lease', identity, scheduler: this.clock, random: () => 0.5 },
      ...{ wallMs: () => this.wallMs(), metrics, ...(times && { times }) },
      log: { ...quietLog, warn },
    })
    const stopping = new AbortController()
    const reported: string[] = []
    const report = (what: string) => reported.push(`${what} ${this.clock.nowMs()}`)
    const run = async () => {
      if (!(await election.acquire(stopping.signal))) return
      report('won')
      report(await election.renew(stopping.signal))
    }
    void run()
    const candidate: Candidate = {
      ...{ election, reported, calls, warnings },
      gauge: async () => (await metrics.isLeader.get()).values[0]?.value,
      stop() {
        stopping.abort()
      },
    }
    this.#candidates.set(identity, candidate)
    return candidate
  }

  /** Writes the Lease as another client, regardless of its version. */
  write(spec: object): void {
    const exists = this.store.get(COLLECTION, 'lease') !== undefined
    if (exists) this.store.patch(COLLECTION, 'lease', { spec })
    else this.store.create(COLLECTION, { metadata: { name: 'lease' }, spec })
  }

  /** Deletes the Lease. */
  remove(): void {
    this.store.remove(COLLECTION, 'lease')
  }

  /** `spec` of the Lease. */
  spec(): { readonly holderIdentity?: string; readonly leaseDurationSeconds?: number } {
    return this.store.get(COLLECTION, 'lease')?.['spec'] ?? {}
  }

  leaders(): string[] {
    const all = [...this.#candidates]
    return all.filter(([, { election }]) => election.isLeading()).map(([identity]) => identity)
  }

  /** Advances the clock, and records the leaders ten times a second. */
  async advance(ms: number): Promise<void> {
    const endMs = this.clock.nowMs() + ms
    do {
      await this.clock.advance(Math.min(STEP_MS, endMs - this.clock.nowMs()))
      const leaders = this.leaders()
      if (leaders.length > 1) this.overlaps.push(`${this.clock.nowMs()} ${leaders.join(' ')}`)
    } while (this.clock.nowMs() < endMs)
  }

  #send(request: KubeRequest, delays: Delays): Promise<KubeResponse> {
    const { requestMs = 0, responseMs = 0, failsWith } = delays
    const aborted = new KubeError('aborted', { status: 0, reason: 'Unreachable' })
    return new Promise((resolve, reject) => {
      request.signal.addEventListener('abort', () => {
        reject(aborted)
      })
      // The server applies the request even if the caller has aborted it.
      this.clock.after(requestMs, () => {
        const done = this.#operate(request)
        const response = failsWith === undefined ? done : responseOf(failsWith, { kind: 'Status' })
        this.clock.after(responseMs, () => {
          resolve(response)
        })
      })
    })
  }

  #operate({ method, body = '{}' }: KubeRequest): KubeResponse {
    const document = JSON.parse(body) as Record<string, unknown>
    try {
      if (method === 'POST') return responseOf(201, this.store.create(COLLECTION, document))
      if (method === 'PUT')
        return responseOf(200, this.store.replace(COLLECTION, 'lease', document))
      const lease = this.store.get(COLLECTION, 'lease')
      return lease === undefined ? responseOf(404, { kind: 'Status' }) : responseOf(200, lease)
    } catch (error) {
      if (!(error instanceof FakeApiError)) throw error
      return responseOf(error.code, { kind: 'Status', code: error.code, reason: error.reason })
    }
  }
}

function responseOf(status: number, document: object): KubeResponse {
  async function* chunks() {
    yield await Promise.resolve(Buffer.from(JSON.stringify(document)))
  }
  return { status, headers: {}, body: chunks() }
}
