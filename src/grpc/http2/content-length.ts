// Reads content-length (RFC 9113 §8.1.1). Pure.
import type { HeaderField } from './hpack-decoder.ts'

const pattern = /^\d{1,15}$/

/** Bytes of the body; `undefined` if the field is absent, NaN if it is invalid. */
export function readContentLength(fields: readonly HeaderField[]): number | undefined {
  let length: number | undefined
  for (const { name, value } of fields) {
    if (name !== 'content-length') continue
    const next = pattern.test(value) ? Number(value) : NaN
    length = length === undefined || length === next ? next : NaN
  }
  return length
}
