// The operator's operations on a link, and that caches are invalidated before the response.
import { expect, test } from '@jest/globals'
import { sampleLink } from '../../test/contract/sample-link.ts'
import type { LinkStore } from '../links/link-store.ts'
import { StoreError } from '../resilience/store-error.ts'
import { createMemoryLinkStore } from '../../test/kit/stores/memory-link-store.ts'
import { createLinkOperations } from './set-link-state.ts'

const NOW_MS = 1_790_000_000_000

function operator(change: Partial<LinkStore> = {}, isCacheDown = false) {
  const links = createMemoryLinkStore()
  const changed: string[] = []
  const onChanged = (code: string) => {
    changed.push(code)
    return Promise.resolve(!isCacheDown)
  }
  const operations = createLinkOperations({
    links: { ...links, ...change },
    nowMs: () => NOW_MS,
    onChanged,
  })
  return { links, operations, changed }
}

test('a link is shown, disabled, enabled and erased, idempotently', async () => {
  const { links, operations, changed } = operator()
  const link = sampleLink()
  const { code } = link
  await links.insertIfAbsent(link)
  const disabled = { ...link, disabledAtMs: NOW_MS }
  const erased = { ...link, longUrl: null, deletedAtMs: NOW_MS }
  expect(await operations.show(code)).toEqual({ kind: 'link', link })
  expect(changed).toEqual([])
  for (let i = 0; i < 2; i++) {
    expect(await operations.disable(code)).toEqual({ kind: 'link', link: disabled })
  }
  for (let i = 0; i < 2; i++) {
    expect(await operations.enable(code)).toEqual({ kind: 'link', link })
  }
  for (let i = 0; i < 2; i++) {
    expect(await operations.erase(code)).toEqual({ kind: 'link', link: erased })
  }
  expect(await operations.enable(code)).toEqual({ kind: 'link', link: erased })
  expect(changed).toEqual(Array.from({ length: 7 }, () => code))
})

test('an unknown code is not found and not invalidated', async () => {
  const { operations, changed } = operator()
  for (const operation of [operations.show, operations.disable, operations.enable]) {
    expect(await operation('nowhere')).toEqual({ kind: 'not-found' })
  }
  expect(await operations.erase('nowhere')).toEqual({ kind: 'not-found' })
  expect(changed).toEqual([])
})

test('a change without confirmed invalidation is not acknowledged', async () => {
  const { links, operations } = operator({}, true)
  const link = sampleLink()
  const { code } = link
  await links.insertIfAbsent(link)
  for (const operation of [operations.disable, operations.enable, operations.erase]) {
    expect(await operation(code)).toEqual({ kind: 'cache-unavailable' })
  }
  expect((await links.find(code))?.longUrl).toBeNull() // the change is stored anyway
})

test('a change of unknown outcome is invalidated: it may have been stored', async () => {
  const fail = () => Promise.reject(new StoreError('down', { outcome: 'unknown' }))
  const { operations, changed } = operator({ setDisabled: fail, erase: fail, readSerial: fail })
  expect(await operations.disable('a')).toEqual({ kind: 'store-unavailable' })
  expect(await operations.enable('b')).toEqual({ kind: 'store-unavailable' })
  expect(await operations.erase('c')).toEqual({ kind: 'store-unavailable' })
  expect(changed).toEqual(['a', 'b', 'c'])
  expect(await operations.show('d')).toEqual({ kind: 'store-unavailable' })
  const { operations: withoutCache } = operator({ setDisabled: fail }, true)
  expect(await withoutCache.disable('e')).toEqual({ kind: 'store-unavailable' })
})

test('a defect of the store is thrown, not reported as an outage', async () => {
  const { operations } = operator({ erase: () => Promise.reject(new Error('a defect')) })
  await expect(operations.erase('a')).rejects.toThrow('a defect')
})
