// Intents: what a create request with an Idempotency-Key set out to do, written before it is done,
// so that a retry with the same key completes the same creation.

/** How long an intent is kept: the promised day, and an hour for requests in flight at its end. */
export const INTENT_TTL_MS = 25 * 3_600_000

/** One intent. The key is stored as a hash only. */
export interface Intent {
  /** SHA-256 of the Idempotency-Key, in hex. */
  readonly keyHash: string
  /** SHA-256 of the validated body, in hex. */
  readonly bodyHash: string
  /** The code to be claimed; moves only if an alias already has it. */
  readonly code: string
  /** Writer of the link to be. */
  readonly writerId: string
  readonly createdAtMs: number
  readonly expiresAtMs: number | null
}

/** Intents by their keys; each expires INTENT_TTL_MS after its creation. */
export interface IntentStore {
  /** Stores `intent` unless its key has one; resolves to the intent then there. */
  insertIfAbsent(intent: Intent): Promise<Intent>
  /** The key's intent after every write under way has been decided. */
  readSerial(keyHash: string): Promise<Intent | undefined>
  /** Replaces code `from` by `to` if it is still `from`; resolves to the intent then there. */
  move(change: { intent: Intent; to: string }): Promise<Intent | undefined>
}
