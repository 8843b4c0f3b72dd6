// The digest of the resources of a version, by which a version that is sent twice is recognized.
import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { lengthPrefixed } from '../../limits/rule-tree.ts'
import type { DiscoveryResponse } from '../../protobuf/discovery.ts'

/** Hashing this many bytes takes less than 1 ms. */
const SLICE_BYTES = 256 * 1024
/** Added to the bytes of each resource, because each hash has a fixed cost. */
const RESOURCE_COST_BYTES = 2048

/**
 * SHA-256 of the types and bytes of the resources. Independent of their order, because control
 * planes keep them in maps without an order. The event loop runs between two slices.
 */
export async function versionDigest({ typeUrl, resources }: DiscoveryResponse): Promise<string> {
  const digests: string[] = []
  let bytesLeft = SLICE_BYTES
  for (const { typeUrl: type, bytes } of resources) {
    const hash = createHash('sha256').update(lengthPrefixed(type))
    bytesLeft -= RESOURCE_COST_BYTES
    for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
      const slice = bytes.subarray(at, at + SLICE_BYTES)
      hash.update(slice)
      bytesLeft -= slice.length
      if (bytesLeft > 0) continue
      await setImmediate()
      bytesLeft = SLICE_BYTES
    }
    digests.push(hash.digest('hex'))
  }
  const all = createHash('sha256').update(lengthPrefixed(typeUrl))
  return all.update(digests.sort().join('')).digest('hex')
}
