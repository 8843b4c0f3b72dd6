// The tree against a model that walks the descriptors as they stand in the file: random files,
// random requests.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { stringify } from 'yaml'
import type { Entry } from './descriptor.ts'
import { counterKey, matchDescriptor } from './match.ts'
import { parseRules } from './rules.ts'

/** A descriptor as a file has it. */
interface Written {
  readonly key: string
  readonly value?: string
  readonly rate_limit?: { unit: string; requests_per_unit: number }
  readonly share_threshold?: boolean
  readonly value_to_metric?: boolean
  readonly detailed_metric?: boolean
  readonly descriptors?: readonly Written[]
}

/** What the model says of a request. */
interface Expected {
  /** The number of the limit, which is another for each descriptor. */
  readonly requests: number
  readonly metricPath: string
  readonly counter: string
}

const keys = fc.constantFrom('a', 'b', 'a_b')
const texts = fc.array(fc.constantFrom('x', 'y', '_', '*'), { maxLength: 4 })
const values = texts.map((all) => all.join(''))
const flag = fc.boolean()

function levels(depth: number): fc.Arbitrary<Written[]> {
  const below = depth > 1 ? levels(depth - 1) : fc.constant([])
  const drawn = fc.record({
    key: keys,
    value: values,
    limited: flag,
    flags: fc.tuple(flag, flag, flag),
    below,
  })
  return fc
    .uniqueArray(drawn, { maxLength: 5, selector: ({ key, value }) => `${key} ${value}` })
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

/** Gives each limit a number of its own. */
function numbered(all: readonly Written[], next = { number: 1 }): Written[] {
  return all.map((each) => ({
    ...each,
    ...(each.rate_limit
      ? { rate_limit: { ...each.rate_limit, requests_per_unit: next.number++ } }
      : {}),
    descriptors: numbered(each.descriptors ?? [], next),
  }))
}

function fits(pattern: string, value: string): boolean {
  return new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(value)
}

function stepInto(all: readonly Written[], { key, value }: Entry): Written | undefined {
  const mine = all.filter((each) => each.key === key)
  return (
    mine.find((each) => each.value !== '' && each.value === value) ??
    mine.find((each) => each.value?.includes('*') && fits(each.value, value)) ??
    mine.find((each) => each.value === '')
  )
}

function model(all: readonly Written[], entries: readonly Entry[]): Expected | undefined {
  let level = all
  const path: Written[] = []
  for (const entry of entries) {
    const node = stepInto(level, entry)
    if (node === undefined) return undefined
    path.push(node)
    level = node.descriptors ?? []
  }
  const last = path.at(-1)
  if (last?.rate_limit === undefined) return undefined
  const shown = path.map((node, at) => {
    const own = entries[at]?.value ?? ''
    const named = node.value_to_metric === true || last.detailed_metric === true
    const word = node.share_threshold === true || !named ? node.value : own
    return word === '' ? node.key : `${node.key}_${word ?? ''}`
  })
  const counted = path.map((node, at) =>
    node.share_threshold === true ? node.value : entries[at]?.value,
  )
  return {
    requests: last.rate_limit.requests_per_unit,
    metricPath: ['d', ...shown].join('.'),
    counter: JSON.stringify([path.map(({ key, value }) => [key, value]), counted]),
  }
}

const requests = fc.array(
  fc.array(fc.record({ key: keys, value: values }), { minLength: 1, maxLength: 3 }),
  { minLength: 20, maxLength: 40 },
)

test('random requests hit in random files what the model says, and count where it says', () => {
  let hits = 0
  fc.assert(
    fc.property(
      levels(3).map((all) => numbered(all)),
      requests,
      (descriptors, asked) => {
        const text = stringify({ domain: 'd', descriptors })
        const parsed = parseRules([{ name: 'f', text }], { mergeDomains: false })
        if ('faults' in parsed) throw new Error(parsed.faults[0]?.message)
        const counters = new Map<string, string>()
        for (const entries of asked) {
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
