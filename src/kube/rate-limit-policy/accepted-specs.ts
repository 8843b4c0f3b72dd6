// The accepted specs that no status contains yet, as they are stored beside the last version.
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import * as z from 'zod'
import type { AcceptedSpec } from '../../policies/policy.ts'

/** An accepted spec of a policy whose status does not contain it. */
export interface UnreportedSpec extends AcceptedSpec {
  /** The uid of the policy. */
  readonly uid: string
}

/** The rules of all namespaces are at most 3.5 MiB, and their JSON is longer. */
const JSON_BYTES_MAX = 32 * 1024 * 1024
const compress = promisify(gzip)
const decompress = promisify(gunzip)

// Fields of later releases are kept, as in statuses.
const entry = z.looseObject({
  key: z.string(),
  value: z.string().exactOptional(),
  secretRef: z.looseObject({ name: z.string() }).exactOptional(),
  secretSelector: z.looseObject({ matchLabels: z.record(z.string(), z.string()) }).exactOptional(),
})
const limit = z.looseObject({
  name: z.string(),
  algorithm: z.string(),
  requests: z.number().exactOptional(),
  window: z.string().exactOptional(),
  burst: z.number().exactOptional(),
  unlimited: z.boolean().exactOptional(),
})
const spec = z.looseObject({
  domain: z.string().exactOptional(),
  match: z.array(entry),
  limits: z.array(limit),
  mode: z.enum(['Enforce', 'Audit']),
  replaces: z.array(z.string()).exactOptional(),
  onStoreError: z.enum(['Local', 'Allow', 'Deny']),
})
const shape = z.array(z.looseObject({ uid: z.string(), generation: z.int(), spec }))

/** Encodes specs as JSON, compressed by gzip. */
export function encodeAccepted(specs: readonly UnreportedSpec[]): Promise<Buffer> {
  return compress(JSON.stringify(specs))
}

/** Decodes specs, by the uid of their policies. Rejects if the bytes are not valid. */
export async function decodeAccepted(bytes: Buffer): Promise<Map<string, UnreportedSpec>> {
  const json = await decompress(bytes, { maxOutputLength: JSON_BYTES_MAX })
  return new Map(shape.parse(JSON.parse(json.toString())).map((each) => [each.uid, each]))
}
