// Intents in memory: for tests, and as the simplest reference for an intent store.
import { type Intent, INTENT_TTL_MS, type IntentStore } from '../../../src/links/intent-store.ts'
import type { Clock } from '../../../src/resilience/deadline.ts'

/** Creates an empty store; `nowMs` determines when intents expire. */
export function createMemoryIntentStore(nowMs: Clock): IntentStore {
  const intents = new Map<string, Intent>()
  const read = (keyHash: string) => {
    const intent = intents.get(keyHash)
    return intent !== undefined && intent.createdAtMs + INTENT_TTL_MS > nowMs() ? intent : undefined
  }
  return {
    insertIfAbsent(intent) {
      const existing = read(intent.keyHash)
      if (existing === undefined) intents.set(intent.keyHash, intent)
      return Promise.resolve(existing ?? intent)
    },
    readSerial: (keyHash) => Promise.resolve(read(keyHash)),
    move({ intent, to }) {
      const existing = read(intent.keyHash)
      if (existing?.writerId === intent.writerId && existing.code === intent.code) {
        intents.set(intent.keyHash, { ...existing, code: to })
      }
      return Promise.resolve(read(intent.keyHash))
    },
  }
}
