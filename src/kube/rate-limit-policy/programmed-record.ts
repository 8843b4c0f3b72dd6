// Records which generation of each policy a status reported as programmed. Each replica of the
// controller records what its watch delivers, so that a new leader repeats no log line or event.
import { LRUCache } from 'lru-cache'
import type { RateLimitPolicy, RateLimitPolicyStatus } from './rate-limit-policy.ts'

/** The recorded generations. */
export interface ProgrammedRecord {
  /** Records what the status of a policy reports. */
  readonly note: (policy: Pick<RateLimitPolicy, 'metadata' | 'status'>) => void
  /** Whether a status has reported the accepted generation of `status` as programmed. */
  readonly has: (uid: string, status: RateLimitPolicyStatus) => boolean
}

const POLICIES_MAX = 10_000

/** Creates an empty record. */
export function createProgrammedRecord(): ProgrammedRecord {
  const generations = new LRUCache<string, number>({ max: POLICIES_MAX })
  return {
    note({ metadata, status }) {
      if (status !== undefined && conditionOf(status, 'Programmed')?.status === 'True')
        generations.set(metadata.uid, generationOf(status))
    },
    has: (uid, status) => generations.get(uid) === generationOf(status),
  }
}

function generationOf({ accepted }: RateLimitPolicyStatus): number {
  return accepted?.generation ?? 0
}

/** The condition of a type. */
export function conditionOf(status: RateLimitPolicyStatus | undefined, type: string) {
  return status?.conditions?.find((condition) => condition.type === type)
}
