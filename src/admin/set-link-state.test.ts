// What an operator can do to a link, and that whoever remembers the link is told before the answer.
import { expect, test } from '@jest/globals'
import { sampleLink } from '../../test/contract/sample-link.ts'
import type { LinkStore } from '../links/link-store.ts'
import { StoreError } from '../resilience/store-error.ts'
import { createMemoryLinkStore } from '../stores/memory/link-store.ts'
import { createLinkOperations } from './set-link-state.ts'

const NOW_MS = 1_790_000_000_000

function operator(change: Partial<LinkStore> = {}, isCacheAway = false) {
  const links = createMemoryLinkStore()
  const told: string[] = []
  const onChanged = (code: string) => {
    told.push(code)
    return Promise.resolve(!isCacheAway)
  }
  const operations = createLinkOperations({
    links: { ...links, ...change },
    nowMs: () => NOW_MS,
    onChanged,
  })
  return { links, operations, told }
}

test('a link is shown, disabled, enabled and erased, and each may be repeated', async () => {
  const { links, operations, told } = operator()
  const link = sampleLink()
  const { code } = link
  await links.insertIfAbsent(link)
  const disabled = { ...link, disabledAtMs: NOW_MS }
  const erased = { ...link, longUrl: null, deletedAtMs: NOW_MS }
  expect(await operations.show(code)).toEqual({ kind: 'link', link })
  expect(told).toEqual([])
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
  expect(told).toEqual(Array.from({ length: 7 }, () => code))
})

test('an unknown code is not found, and nobody need forget it', async () => {
  const { operations, told } = operator()
  for (const operation of [operations.show, operations.disable, operations.enable]) {
    expect(await operation('nowhere')).toEqual({ kind: 'not-found' })
  }
  expect(await operations.erase('nowhere')).toEqual({ kind: 'not-found' })
  expect(told).toEqual([])
})

test('a change that is not known to be forgotten everywhere is not acknowledged', async () => {
  const { links, operations } = operator({}, true)
  const link = sampleLink()
  const { code } = link
  await links.insertIfAbsent(link)
  for (const operation of [operations.disable, operations.enable, operations.erase]) {
    expect(await operation(code)).toEqual({ kind: 'store-unavailable' })
  }
  expect((await links.find(code))?.longUrl).toBeNull() // it is done all the same
})

test('a change of unknown outcome is forgotten too: it may have been done', async () => {
  const fail = () => Promise.reject(new StoreError('away', { outcome: 'unknown' }))
  const { operations, told } = operator({ setDisabled: fail, erase: fail, readSerial: fail })
  expect(await operations.disable('a')).toEqual({ kind: 'store-unavailable' })
  expect(await operations.enable('b')).toEqual({ kind: 'store-unavailable' })
  expect(await operations.erase('c')).toEqual({ kind: 'store-unavailable' })
  expect(told).toEqual(['a', 'b', 'c'])
  expect(await operations.show('d')).toEqual({ kind: 'store-unavailable' })
})

test('a defect of the store is no outage', async () => {
  const { operations } = operator({ erase: () => Promise.reject(new Error('a defect')) })
  await expect(operations.erase('a')).rejects.toThrow('a defect')
})
