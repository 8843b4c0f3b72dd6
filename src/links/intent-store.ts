// Intents: the planned effect of a create request with an Idempotency-Key. An intent is written
// before the link, so that a retry with the same key completes the same create.

/** Lifetime of an intent: 24 hours by contract, and one hour for requests in flight at its end. */
export const INTENT_TTL_MS = 25 * 3_600_000

/** One intent. Its key is stored only as a hash. */
export interface Intent {
  /** SHA-256 of the creator, if any, and the Idempotency-Key, in hex. */
  readonly keyHash: string
  /** SHA-256 of the validated body, in hex. */
  readonly bodyHash: string
  /** The code to claim; replaced only if an alias already has it. */
  readonly code: string
  /** `writerId` of the link to create. */
  readonly writerId: string
  readonly createdAtMs: number
  readonly expiresAtMs: number | null
}

/** Intents by their keys; each expires INTENT_TTL_MS after its creation. */
export interface IntentStore {
  /** Stores `intent` unless its key has one; resolves to the stored intent. */
  insertIfAbsent(intent: Intent): Promise<Intent>
  /** Serial read: the intent of the key after all writes in flight are decided. */
  readSerial(keyHash: string): Promise<Intent | undefined>
  /**
   * Replaces the code of `intent` with `to` if the stored intent still equals it; resolves to the
   * stored intent.
   */
  move(change: { intent: Intent; to: string }): Promise<Intent | undefined>
}
