// Reads how long a request says its body is (RFC 9113 §8.1.1). Touches nothing.
import type { HeaderField } from './hpack-decoder.ts'

const form = /^\d{1,15}$/

/** Bytes of the body; undefined if the client does not say, NaN if it is no length. */
export function readContentLength(fields: readonly HeaderField[]): number | undefined {
  let length: number | undefined
  for (const { name, value } of fields) {
    if (name !== 'content-length') continue
    const next = form.test(value) ? Number(value) : NaN
    length = length === undefined || length === next ? next : NaN
  }
  return length
}
