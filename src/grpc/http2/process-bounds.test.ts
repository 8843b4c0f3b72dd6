// Fair shares of the process bounds for addresses and connections, also under attack.
import { expect, jest, test } from '@jest/globals'
import { ProcessBounds, processMax, type Share } from './process-bounds.ts'

const max = { ...processMax, connections: 40, streams: 100, messages: 1000 }

function openBounds() {
  const shed = jest.fn<(kind: string) => void>()
  const bounds = new ProcessBounds(shed, max)
  const closed: Share[] = []
  const open = (address: string): Share => {
    const share = bounds.open(address, () => {
      const { messages, streams } = one.budgets
      messages.release(messages.used)
      streams.release(streams.used)
      bounds.close(one)
      closed.push(one)
    })
    if (share === undefined) throw new Error('the connection was rejected')
    const one = share
    return one
  }
  return { bounds, open, closed, shed }
}

/** Acquires one by one until the budget is exhausted. */
function takeAll({ budgets }: Share, kind: 'messages' | 'streams'): number {
  let taken = 0
  while (taken < 10_000 && budgets[kind].acquire(1)) taken += 1
  return taken
}

test('one address may use at most half, so that some always remains free for the next', () => {
  const { bounds, open } = openBounds()
  expect(takeAll(open('a'), 'messages')).toBe(500)
  expect(open('b').budgets.messages.acquire(250)).toBe(true)
  expect(open('c').budgets.messages.acquire(125)).toBe(true)
  expect(bounds.sums.messages.used).toBe(875)
})

test('for a connection below the average, the largest connections are shed', () => {
  const { bounds, open, closed, shed } = openBounds()
  const large = Array.from({ length: 10 }, () => open('a'))
  for (const one of large) one.budgets.messages.acquire(50)
  const honest = open('a')
  expect(large[0]?.budgets.messages.acquire(1)).toBe(false)
  expect(closed).toEqual([])
  expect(honest.budgets.messages.acquire(30)).toBe(true)
  expect(closed).toEqual([large[9]])
  expect(shed.mock.calls.every(([kind]) => kind === 'messages')).toBe(true)
  expect(bounds.sums.messages.used).toBe(480)
})

test('for an address below the average, connections of larger addresses are shed', () => {
  const { bounds, open, closed } = openBounds()
  for (let i = 0; i < 30; i += 1) takeAll(open(`attacker ${i}`), 'streams')
  expect(open('honest').budgets.streams.acquire(1)).toBe(true)
  expect(closed.length).toBeGreaterThan(0)
  expect(bounds.sums.streams.used).toBeLessThanOrEqual(max.streams)
})

test('connections beyond the share of their address are rejected', () => {
  const { bounds, open } = openBounds()
  const opened = Array.from({ length: 20 }, () => open('a'))
  expect(bounds.open('a', () => undefined)).toBeUndefined()
  open('b')
  for (const one of opened) bounds.close(one)
  expect(bounds.sums.connections).toMatchObject({ used: 1, holders: 1 })
  open('a')
})

test('an amount beyond the share is rejected, even without other holders', () => {
  const { open, shed } = openBounds()
  const { messages } = open('a').budgets
  expect(messages.acquire(501)).toBe(false)
  expect(shed.mock.calls).toEqual([['messages']])
  expect(messages.acquire(500)).toBe(true)
  expect(shed).toHaveBeenCalledTimes(1)
})

test('a connection that closes twice releases its budget once', () => {
  const { bounds, open } = openBounds()
  const [one] = [open('a'), open('a')]
  for (let times = 0; times < 2; times += 1) bounds.close(one)
  expect(bounds.sums.connections.used).toBe(1)
})

test('an address is kept while one of its connections is open', () => {
  const { bounds, open } = openBounds()
  const [first, second] = [open('a'), open('a')]
  second.budgets.streams.acquire(40)
  bounds.close(first)
  open('a').budgets.streams.acquire(5)
  expect(bounds.sums.streams).toMatchObject({ used: 45, holders: 1 })
})

test('connections of the largest address are shed first, even if they are smaller', () => {
  const { open, closed } = openBounds()
  const many = Array.from({ length: 6 }, () => open('many'))
  for (const one of many) one.budgets.messages.acquire(80)
  open('large').budgets.messages.acquire(200)
  expect(open('honest').budgets.messages.acquire(161)).toBe(true)
  expect(closed).toEqual([many[5]])
})

test('an address sheds its largest connection, even if another is newer', () => {
  const { open, closed } = openBounds()
  const [large, newer] = [open('a'), open('a')]
  large.budgets.messages.acquire(300)
  newer.budgets.messages.acquire(100)
  expect(open('honest').budgets.messages.acquire(301)).toBe(true)
  expect(closed).toEqual([large])
})

test('a connection is compared with the average of all holders', () => {
  const { open, closed } = openBounds()
  const [larger, smaller] = [open('a'), open('a')]
  larger.budgets.streams.acquire(30)
  smaller.budgets.streams.acquire(20)
  expect(smaller.budgets.streams.acquire(1)).toBe(true)
  expect(closed).toEqual([larger])
})
