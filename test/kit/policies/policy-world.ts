// RateLimitPolicies in memory, with the rules of the API server for generations, resource versions
// and statuses. Writes of statuses succeed, fail, or lose their response.
import { KubeError } from '../../../src/kube/kube-error.ts'
import { splitKey } from '../../../src/kube/objects.ts'
import type {
  RateLimitPolicy,
  RateLimitPolicySpec,
  RateLimitPolicyStatus,
} from '../../../src/kube/rate-limit-policy/rate-limit-policy.ts'
import { createProgrammedRecord } from '../../../src/kube/rate-limit-policy/programmed-record.ts'
import type { ReportDeps } from '../../../src/kube/rate-limit-policy/report-policies.ts'
import type { DomainGrant } from '../../../src/policies/policy.ts'

/** Both namespaces may write to one domain, and have a small share. */
export const POLICY_GRANTS: readonly DomainGrant[] = [
  { domain: 'd', namespaces: ['n', 'm'], bytes: 1000 },
]

/** The policies. */
export class PolicyWorld {
  /** The result of the next writes of statuses. */
  result: 'ok' | 'lost' | 'fails' = 'ok'
  readonly events: string[] = []
  /** The warnings in the log. */
  readonly logged: object[] = []
  /** The log entries at info, one for each policy that all limiters apply. */
  readonly programmed: object[] = []
  nowMs = 0
  /** How many statuses were decided. */
  decisions = 0
  readonly #policies = new Map<string, RateLimitPolicy>()
  #version = 0

  /** With policies of the namespace `n`, by name, from the oldest to the youngest. */
  constructor(policies: readonly (readonly [string, RateLimitPolicySpec])[]) {
    for (const [at, [name, spec]] of policies.entries()) this.add(`n/${name}`, spec, at)
  }

  /** Adds a policy; `key` is `namespace/name`. */
  add(key: string, spec: RateLimitPolicySpec, createdSeconds: number): void {
    const creationTimestamp = new Date(createdSeconds * 1000).toISOString()
    const metadata = { ...splitKey(key), uid: key, creationTimestamp }
    const resourceVersion = String(++this.#version)
    this.#put({ metadata: { ...metadata, resourceVersion, generation: 1 }, spec })
  }

  edit(name: string, spec: RateLimitPolicySpec): void {
    const before = this.#policies.get(`n/${name}`)
    if (before === undefined || JSON.stringify(before.spec) === JSON.stringify(spec)) return
    const { generation = 0 } = before.metadata
    const resourceVersion = String(++this.#version)
    const metadata = { ...before.metadata, resourceVersion, generation: generation + 1 }
    this.#put({ ...before, metadata, spec })
  }

  list(): RateLimitPolicy[] {
    return [...this.#policies.values()]
  }

  /** The dependencies of the reports of a new process, which see every change at once. */
  get reportDeps(): Omit<ReportDeps, 'versions' | 'limiters'> {
    const programmed = createProgrammedRecord()
    return {
      api: {
        call: async ({ path, body }) => {
          const { metadata, status } = body as RateLimitPolicy & { status: RateLimitPolicyStatus }
          await Promise.resolve()
          const written = this.#write(path, metadata, status)
          programmed.note({ metadata: written.metadata, status }) // the watch precedes the response
          return written
        },
      },
      policies: {
        list: () => this.list(),
        get: (key) => this.#policies.get(key),
        replace: () => undefined, // the write has replaced it
      },
      programmed,
      events: {
        emit: ({ regarding, reason }) => this.events.push(`${regarding.name} ${reason}`),
      },
      nowMs: () => this.nowMs,
      wallMs: () => {
        this.decisions++
        return this.nowMs
      },
      log: {
        info: (fields: object) => this.programmed.push(fields),
        warn: (fields: object) => this.logged.push(fields),
      },
    }
  }

  #write(path: string, metadata: RateLimitPolicy['metadata'], status: RateLimitPolicyStatus) {
    const { namespace, name, resourceVersion } = metadata
    if (!path.endsWith(`/${name}/status`)) throw new Error(`unexpected path ${path}`)
    const before = this.#policies.get(`${namespace}/${name}`)
    if (this.result === 'fails' || before === undefined) throw failure(0, 'Unreachable')
    if (before.metadata.resourceVersion !== resourceVersion) throw failure(409, 'Conflict')
    const stored = JSON.parse(JSON.stringify(status)) as RateLimitPolicyStatus
    const next = { ...before.metadata, resourceVersion: String(++this.#version) }
    this.#put({ ...before, metadata: next, status: stored })
    if (this.result === 'lost') throw failure(0, 'Unreachable')
    return { ...before, metadata: next, status: stored }
  }

  #put(policy: RateLimitPolicy): void {
    const { namespace, name } = policy.metadata
    this.#policies.set(`${namespace}/${name}`, policy)
  }
}

function failure(status: number, reason: string): KubeError {
  return new KubeError(reason, { status, reason })
}
