// Compares the rule tree with a model that searches the descriptors of the file, for random files
// and random requests.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { stringify } from 'yaml'
import type { Entry } from './descriptor.ts'
import { counterKey, matchDescriptor } from './match.ts'
import { parseRules } from './parse-rules.ts'

/** A descriptor in a file. */
interface FileDescriptor {
  readonly key: string
  readonly value?: string
  readonly rate_limit?: { unit: string; requests_per_unit: number }
  readonly share_threshold?: boolean
  readonly value_to_metric?: boolean
  readonly detailed_metric?: boolean
  readonly descriptors?: readonly FileDescriptor[]
}

/** The model's result for a request. */
interface Expected {
  /** The number of the limit, unique for each descriptor. */
  readonly requests: number
  readonly metricPath: string
  readonly counter: string
}

const keys = fc.constantFrom('a', 'b', 'a_b')
const characters = fc.array(fc.constantFrom('x', 'y', '_', '*'), { maxLength: 4 })
const values = characters.map((all) => all.join(''))
const flag = fc.boolean()

function levels(depth: number): fc.Arbitrary<FileDescriptor[]> {
  const below = depth > 1 ? levels(depth - 1) : fc.constant([])
  const descriptor = fc.record({
    key: keys,
    value: values,
    limited: flag,
    flags: fc.tuple(flag, flag, flag),
    below,
  })
  return fc
    .uniqueArray(descriptor, { maxLength: 5, selector: ({ key, value }) => `${key} ${value}` })
    .map((all) =>
      all.map(({ key, value, limited, flags: [shared, named, detailed], below: descriptors }) => ({
        key,
        value,
        share_threshold: shared && value.includes('*'),
        value_to_metric: named,
        detailed_metric: detailed,
        ...(limited ? { rate_limit: { unit: 'hour', requests_per_unit: 0 } } : {}),
        descriptors,
      })),
    )
}

/** Sets a unique number for each limit. */
function numbered(all: readonly FileDescriptor[], next = { number: 1 }): FileDescriptor[] {
  return all.map((each) => ({
    ...each,
    ...(each.rate_limit
      ? { rate_limit: { ...each.rate_limit, requests_per_unit: next.number++ } }
      : {}),
    descriptors: numbered(each.descriptors ?? [], next),
  }))
}

function matchesPattern(pattern: string, value: string): boolean {
  return new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(value)
}

function findDescriptor(
  all: readonly FileDescriptor[],
  { key, value }: Entry,
): FileDescriptor | undefined {
  const sameKey = all.filter((each) => each.key === key)
  return (
    sameKey.find((each) => each.value !== '' && each.value === value) ??
    sameKey.find((each) => each.value?.includes('*') && matchesPattern(each.value, value)) ??
    sameKey.find((each) => each.value === '')
  )
}

function model(all: readonly FileDescriptor[], entries: readonly Entry[]): Expected | undefined {
  let level = all
  const path: FileDescriptor[] = []
  for (const entry of entries) {
    const node = findDescriptor(level, entry)
    if (node === undefined) return undefined
    path.push(node)
    level = node.descriptors ?? []
  }
  const last = path.at(-1)
  if (last?.rate_limit === undefined) return undefined
  const names = path.map((node, at) => {
    const own = entries[at]?.value ?? ''
    const named = node.value_to_metric === true || last.detailed_metric === true
    const value = node.share_threshold === true || !named ? node.value : own
    return value === '' ? node.key : `${node.key}_${value ?? ''}`
  })
  const counted = path.map((node, at) =>
    node.share_threshold === true ? node.value : entries[at]?.value,
  )
  return {
    requests: last.rate_limit.requests_per_unit,
    metricPath: ['d', ...names].join('.'),
    counter: JSON.stringify([path.map(({ key, value }) => [key, value]), counted]),
  }
}

const requests = fc.array(
  fc.array(fc.record({ key: keys, value: values }), { minLength: 1, maxLength: 3 }),
  { minLength: 20, maxLength: 40 },
)

test('random requests match the rule and counter of the model, in random files', () => {
  let hits = 0
  fc.assert(
    fc.property(
      levels(3).map((all) => numbered(all)),
      requests,
      (descriptors, sample) => {
        const text = stringify({ domain: 'd', descriptors })
        const parsed = parseRules([{ name: 'f', text }], { mergeDomains: false })
        if ('faults' in parsed) throw new Error(parsed.faults[0]?.message)
        const counters = new Map<string, string>()
        for (const entries of sample) {
          const expected = model(descriptors, entries)
          const match = matchDescriptor({
            rules: parsed.rules,
            domain: 'd',
            descriptor: { entries },
          })
          if (typeof match === 'string' || expected === undefined) {
            expect([match, expected]).toEqual(['no-rule', undefined])
            continue
          }
          hits += 1
          const [rule] = match.rules
          if (rule === undefined) throw new Error('no rule')
          expect(rule.limit?.requests).toBe(expected.requests)
          expect(match.metricPath).toBe(expected.metricPath)
          const key = counterKey(rule, match.values)
          expect(counters.get(key) ?? expected.counter).toBe(expected.counter)
          counters.set(key, expected.counter)
        }
        expect(new Set(counters.values()).size).toBe(counters.size)
      },
    ),
    { numRuns: 400 },
  )
  expect(hits).toBeGreaterThan(200)
})
