// Bounds of decoding a RateLimitConfig: excess items are a fault, and are not kept in memory.
import { expect, test } from '@jest/globals'
import {
  configBytes,
  type ConfigMessage,
  type DescriptorMessage,
} from '../../test/kit/ratelimit/xds-messages.ts'
import { renderFault } from './rule-fault.ts'
import { parseRules } from './parse-rules.ts'

function faultsOf(config: ConfigMessage | Buffer) {
  const bytes = Buffer.isBuffer(config) ? config : configBytes(config)
  const parsed = parseRules([{ index: 0, bytes }], { mergeDomains: false })
  return 'faults' in parsed ? parsed.faults.map(renderFault) : []
}

const shop = (...descriptors: readonly DescriptorMessage[]): ConfigMessage => ({
  name: 'shop',
  domain: 'shop',
  descriptors,
})

test('too many descriptors, and messages that are nested too deep, are faults', () => {
  const many = shop(...Array.from({ length: 100_001 }, (_, n) => ({ key: `k${String(n)}` })))
  expect(faultsOf(many)).toEqual([expect.stringContaining('at most 100000 descriptors in total')])
  expect(faultsOf(nested(200, [34]))).toEqual([
    expect.stringContaining('more than 100 levels deep'),
  ])
  expect(faultsOf(nested(33, [34])).at(-1)).toMatch(
    /^resources\[0\]: descriptors\[0\]\..*: descriptors must be nested at most 32 levels deep$/,
  )
  const value = [66, 10, 18] // metadata, its field, the value; then values that are lists
  expect(faultsOf(nested(200, [10, 50], value))).toEqual([
    expect.stringContaining('more than 100 levels deep'),
  ])
})

test('too many values of metadata, and too many names in replaces, are faults', () => {
  const values = Buffer.alloc(2 * 500_001, Buffer.from([10, 0])) // entries of a Struct
  const field = (tag: number, bytes: Buffer) => {
    const length = [0, 7, 14, 21].map((shift) => ((bytes.length >>> shift) & 127) | 128)
    length[3] = (length[3] ?? 0) & 127
    return Buffer.concat([Buffer.from([tag, ...length]), bytes])
  }
  expect(faultsOf(field(26, field(66, values)))).toEqual([
    expect.stringContaining('metadata has more than 500000 values'),
  ])
  const list = field(50, values) // items of a ListValue
  expect(faultsOf(field(26, field(66, field(10, field(18, list)))))).toEqual([
    expect.stringContaining('metadata has more than 500000 values'),
  ])
  const replaces = Array.from({ length: 2000 }, (_, n) => ({ name: String(n) }))
  expect(faultsOf(shop({ key: 'k', rateLimit: { unit: 'MINUTE', replaces } }))).toEqual([
    expect.stringContaining('.rate_limit: replaces must have at most 100 names'),
  ])
  // Names beyond the bound are not decoded: the last one is malformed.
  const names = Buffer.alloc(5 * 101, Buffer.from([42, 3, 10, 1, 97]))
  const limit = field(26, Buffer.concat([Buffer.from([8, 2]), names, Buffer.from([42, 2, 10, 9])]))
  const descriptor = Buffer.concat([Buffer.from([10, 1, 107]), limit])
  expect(faultsOf(Buffer.concat([Buffer.from([18, 1, 115]), field(26, descriptor)]))).toEqual([
    expect.stringContaining('.rate_limit: replaces must have at most 100 names'),
  ])
})

/** A config of the domain `s` whose descriptor has nested fields with these tags. */
function nested(depth: number, tags: readonly number[], outer: readonly number[] = []): Buffer {
  const lengthOf = (length: number) =>
    length < 128 ? [length] : [(length & 127) | 128, length >>> 7]
  let bytes = Buffer.from([10, 1, 107]) // key: k
  const wrap = (tag: number) => {
    bytes = Buffer.concat([Buffer.from([tag, ...lengthOf(bytes.length)]), bytes])
  }
  for (let level = 0; level < depth; level += 1) tags.forEach(wrap)
  ;[...outer].reverse().forEach(wrap)
  const descriptor = Buffer.concat([Buffer.from([10, 1, 107]), bytes])
  const header = [18, 1, 115, 26, ...lengthOf(descriptor.length)]
  return Buffer.concat([Buffer.from(header), descriptor])
}
