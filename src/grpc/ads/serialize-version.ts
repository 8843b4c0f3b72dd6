// Serializes a version as the response that limiters would receive, for storage: without a nonce,
// so that equal versions have equal bytes. Sends nothing.
import { RULES_TYPE_URL } from '../../limiter/rules/version-parser.ts'
import { writeDiscoveryResponse } from '../../protobuf/discovery.ts'

/** Serializes a version. */
export function serializeVersion(given: {
  readonly version: string
  /** Serialized RateLimitConfigs. */
  readonly resources: readonly Uint8Array[]
}): Buffer {
  const { version, resources } = given
  return writeDiscoveryResponse({ version, nonce: '', typeUrl: RULES_TYPE_URL, resources })
}
