// Intents in memory: for tests, and as the plainest statement of what a store of intents does.
import { type Intent, INTENT_TTL_MS, type IntentStore } from '../../links/intent-store.ts'
import type { Clock } from '../../resilience/deadline.ts'

/** Makes an empty store that judges the life of its intents by `nowMs`. */
export function createMemoryIntentStore(nowMs: Clock): IntentStore {
  const intents = new Map<string, Intent>()
  const read = (keyHash: string) => {
    const intent = intents.get(keyHash)
    return intent !== undefined && intent.createdAtMs + INTENT_TTL_MS > nowMs() ? intent : undefined
  }
  return {
    insertIfAbsent(intent) {
      const stood = read(intent.keyHash)
      if (stood === undefined) intents.set(intent.keyHash, intent)
      return Promise.resolve(stood ?? intent)
    },
    readSerial: (keyHash) => Promise.resolve(read(keyHash)),
    move({ intent, to }) {
      const stood = read(intent.keyHash)
      if (stood?.writerId === intent.writerId && stood.code === intent.code) {
        intents.set(intent.keyHash, { ...stood, code: to })
      }
      return Promise.resolve(read(intent.keyHash))
    },
  }
}
