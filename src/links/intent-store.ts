// Intents: what a create request with an Idempotency-Key set out to do, written before it is done,
// so that whoever comes with the same key finishes the same creation.

/** How long an intent is kept: the promised day, and an hour for requests in flight at its end. */
export const INTENT_TTL_MS = 25 * 3_600_000

/** One intent. The key is stored as a hash only. */
export interface Intent {
  /** SHA-256 of the Idempotency-Key, in hex. */
  readonly keyHash: string
  /** SHA-256 of the validated body, in hex. */
  readonly bodyHash: string
  /** The code to be claimed; moves only when somebody's alias has it. */
  readonly code: string
  /** Writer of the link to be. */
  readonly writerId: string
  readonly createdAtMs: number
  readonly expiresAtMs: number | null
}

/** Intents by their keys; each is gone INTENT_TTL_MS after it was made. */
export interface IntentStore {
  /** Stores `intent` unless its key has one; resolves to the intent then there. */
  insertIfAbsent(intent: Intent): Promise<Intent>
  /** The key's intent after every write under way has been decided. */
  readSerial(keyHash: string): Promise<Intent | undefined>
  /** Replaces code `from` by `to` if it is still `from`; resolves to the intent then there. */
  move(change: { intent: Intent; to: string }): Promise<Intent | undefined>
}
