// Parses a descriptor as operators write it: `key=value,key=value`.
import { type Descriptor, ENTRIES_MAX } from './descriptor.ts'

/** The syntax, for messages about invalid descriptors. */
export const DESCRIPTOR_SYNTAX = 'key=value,key=value ...'

/** Parses a descriptor; `undefined` if it is invalid or has too many entries. */
export function parseDescriptor(source: string): Descriptor | undefined {
  const pairs = source.split(',')
  const entries = pairs.map((pair) => {
    const at = pair.indexOf('=')
    return { key: pair.slice(0, Math.max(at, 0)), value: pair.slice(at + 1) }
  })
  const isValid = entries.length <= ENTRIES_MAX && entries.every(({ key }) => key !== '')
  return isValid ? { entries } : undefined
}
