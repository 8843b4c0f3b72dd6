// An import that crashes at any store call, or does not get the result of one, stores the same
// links once it is retried.
import { expect, test } from '@jest/globals'
import { sampleLink } from '../../test/contract/sample-link.ts'
import { createMemoryLinkStore } from '../../test/kit/stores/memory-link-store.ts'
import {
  createImporter,
  EXPIRES,
  identityOf,
  NOW_MS,
  sampleRow as row,
} from '../../test/kit/transfer/importer.ts'
import type { Link } from '../links/link.ts'
import { StoreError } from '../resilience/store-error.ts'
import { candidatesOf } from './derive-codes.ts'
import type { ImportResult } from './import-result.ts'

type Links = ReturnType<typeof createMemoryLinkStore>

/** Rows of every kind; other writers have already stored `otherLinks`. */
const modelRows = [
  row(),
  row({ short_code: 'off', state: 'disabled' }),
  row({ short_code: 'erased', state: 'deleted', long_url: null, expires_at: EXPIRES }),
  row({ short_code: 'longer-than-ten' }),
  row({ short_code: 'longer-than-that', state: 'disabled' }),
  row({ short_code: 'conflict' }),
  row({ short_code: 'same', long_url: 'https://same.test/' }),
  row({ short_code: 'invalid', long_url: '' }),
]
const otherLinks = [
  sampleLink({ code: 'conflict' }),
  sampleLink({ code: 'same', longUrl: 'https://same.test/', disabledAtMs: 9 }),
  sampleLink({ code: candidatesOf(identityOf(row({ short_code: 'longer-than-ten' })))[0] ?? '' }),
]

async function storeWithOtherLinks(): Promise<Links> {
  const links = createMemoryLinkStore()
  for (const link of otherLinks) await links.insertIfAbsent(link)
  return links
}

/** All records, without the time at which a link was disabled or deleted. */
async function recordsOf(links: Links) {
  const records = await links.scan({ after: undefined, max: 1000 })
  return records.map(({ disabledAtMs, deletedAtMs, ...link }) => ({
    ...link,
    isDisabled: disabledAtMs !== null,
    isDeleted: deletedAtMs !== null,
  }))
}

class Crash extends Error {}

const faults = {
  'crash before': { isApplied: false, error: () => new Crash() },
  'crash after': { isApplied: true, error: () => new Crash() },
  'unknown, not applied': { isApplied: false, error: () => storeError('unknown') },
  'unknown, applied': { isApplied: true, error: () => storeError('unknown') },
  'not done': { isApplied: false, error: () => storeError('not-done') },
}
const storeError = (outcome: 'unknown' | 'not-done') => new StoreError('down', { outcome })

/** `links`, whose call number `at` fails. */
function withFault(links: Links, at: number, fault: (typeof faults)[keyof typeof faults]) {
  let calls = 0
  const guard = <A, T>(call: (given: A) => Promise<T>) => {
    return async (given: A): Promise<T> => {
      if (calls++ !== at) return call(given)
      if (fault.isApplied) await call(given)
      throw fault.error()
    }
  }
  const guarded = {
    find: guard((code: string) => links.find(code)),
    readSerial: guard((code: string) => links.readSerial(code)),
    insertIfAbsent: guard((link: Link) => links.insertIfAbsent(link)),
  }
  return { links: guarded, hasFailed: () => calls > at }
}

test.each(Object.entries(faults))('a retry stores the same records: %s', async (_, fault) => {
  const reference = await storeWithOtherLinks()
  for (const one of modelRows) await createImporter(reference).run(one)
  const expected = await recordsOf(reference)
  let steps = 0
  for (let isComplete = false; !isComplete; steps++) {
    const links = await storeWithOtherLinks()
    const faulty = withFault(links, steps, fault)
    const first = createImporter(faulty.links)
    try {
      for (const one of modelRows) await first.run(one)
    } catch (error) {
      if (!(error instanceof Crash)) throw error
    }
    const retried = createImporter(links, NOW_MS + 5000)
    const outcomes: ImportResult[] = []
    for (const one of modelRows) outcomes.push(await retried.run(one))
    expect([steps, await recordsOf(links)]).toEqual([steps, expected])
    const stored = outcomes.filter(({ code, result }) => code !== null && result !== 'conflict')
    const codes = stored.map(({ code }) => code).filter((code) => code !== 'same')
    expect(retried.invalidated).toEqual(codes)
    isComplete = !faulty.hasFailed()
  }
  expect(steps).toBeGreaterThan(modelRows.length)
})
