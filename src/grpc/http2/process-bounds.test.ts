// Fair shares of the process bounds for addresses and connections, even under attack.
import { describe, expect, jest, test } from '@jest/globals'
import { ProcessBounds, processMax, type TrackedConnection } from './process-bounds.ts'

const max = { ...processMax, connections: 40, streams: 100, messages: 1000 }

function openBounds() {
  const shed = jest.fn<(kind: string) => void>()
  const bounds = new ProcessBounds(shed, max)
  const closed: TrackedConnection[] = []
  const open = (address: string): TrackedConnection => {
    const connection = bounds.open(address, () => {
      const { messages, streams } = one.budgets
      messages.release(messages.used)
      streams.release(streams.used)
      one.close()
      closed.push(one)
    })
    if (connection === undefined) throw new Error('the connection was rejected')
    const one = connection
    return one
  }
  return { bounds, open, closed, shed }
}

/** Acquires one by one until the budget is exhausted. */
function takeAll({ budgets }: TrackedConnection, kind: 'messages' | 'streams'): number {
  let taken = 0
  while (taken < 10_000 && budgets[kind].acquire(1)) taken += 1
  return taken
}

test('one address may use at most half, so that another address can always acquire some', () => {
  const { bounds, open } = openBounds()
  expect(takeAll(open('a'), 'messages')).toBe(500)
  expect(open('b').budgets.messages.acquire(250)).toBe(true)
  expect(open('c').budgets.messages.acquire(125)).toBe(true)
  expect(bounds.usage.messages.used).toBe(875)
})

test.each([
  ['one address', () => 'attacker'],
  ['an address each', (nth: number) => `attacker ${nth}`],
  ['the address of the honest one', () => 'honest'],
])('four connections from %s that take all they can leave one that needs little', (_, from) => {
  const { bounds, open, closed } = openBounds()
  const greedy = Array.from({ length: 4 }, (_, nth) => open(from(nth)))
  const takeMore = () => {
    greedy.forEach((one, nth) => {
      const connected = closed.includes(one) ? open(from(nth)) : one // it connects another time
      takeAll(connected, 'messages')
      greedy[nth] = connected
    })
  }
  takeMore()
  const honest = open('honest')
  for (let chunk = 0; chunk < 5; chunk++) {
    expect(honest.budgets.messages.acquire(10)).toBe(true) // a message in several frames
    takeMore()
  }
  expect(closed).not.toContain(honest)
  expect(bounds.usage.messages.used).toBeLessThanOrEqual(max.messages)
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
  expect(bounds.usage.messages.used).toBe(480)
})

test('for an address below the average, connections of larger addresses are shed', () => {
  const { bounds, open, closed } = openBounds()
  for (let i = 0; i < 30; i += 1) takeAll(open(`attacker ${i}`), 'streams')
  expect(open('honest').budgets.streams.acquire(1)).toBe(true)
  expect(closed.length).toBeGreaterThan(0)
  expect(bounds.usage.streams.used).toBeLessThanOrEqual(max.streams)
})

test('connections beyond the share of their address are rejected', () => {
  const { bounds, open } = openBounds()
  const opened = Array.from({ length: 20 }, () => open('a'))
  expect(bounds.open('a', () => undefined)).toBeUndefined()
  open('b')
  for (const one of opened) one.close()
  expect(bounds.usage.connections).toMatchObject({ used: 1, holders: 1 })
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
  for (let times = 0; times < 2; times += 1) one.close()
  expect(bounds.usage.connections.used).toBe(1)
})

/** Opens 39 of 40 connections, which stay open while they are being shed. */
function fillBounds() {
  const { bounds, shed } = openBounds()
  const shares: TrackedConnection[] = []
  const closing: TrackedConnection[] = []
  for (const [address, count] of Object.entries({ a: 20, b: 10, c: 5, d: 2, e: 1, f: 1 })) {
    for (let i = 0; i < count; i += 1) {
      const connection = bounds.open(address, () => closing.push(one))
      if (connection === undefined) throw new Error('the connection was rejected')
      const one = connection
      shares.push(one)
    }
  }
  return { bounds, shed, shares, closing }
}

test('a new address takes the place of a shed connection before the client has closed it', () => {
  const { bounds, shed, shares } = fillBounds()
  for (const name of ['x', 'y', 'z']) expect(bounds.open(name, () => undefined)).toBeDefined()
  expect(shed.mock.calls).toEqual([['connections'], ['connections'], ['connections']])
  for (const connection of shares) connection.close()
  expect(bounds.usage.connections).toMatchObject({ used: 3, holders: 3 })
})

test('connections are shed once, even if their calls in progress complete later', () => {
  const { bounds, shed, shares, closing } = fillBounds()
  const honest = bounds.open('honest', () => undefined)
  shed.mockClear()
  const streams = [50, 25, 12, 6, 3, 2]
  const first = [0, 20, 30, 35, 37, 38] // the first connection of each address
  first.forEach((at, n) => shares[at]?.budgets.streams.acquire(streams[n] ?? 0))
  const acquired = Array.from({ length: 5 }, () => honest?.budgets.streams.acquire(1))
  expect(acquired).toEqual([true, false, false, false, false])
  expect(closing.slice(-1)).toEqual([shares[0]])
  expect(shed).toHaveBeenCalledTimes(1 + 4) // also counts each rejection
  shares[0]?.budgets.streams.release(50)
  expect(honest?.budgets.streams.acquire(1)).toBe(true)
})

test('a client that closes its connections keeps the share of its calls in progress', () => {
  const { bounds, open } = openBounds()
  const first = open('a')
  expect(takeAll(first, 'streams')).toBe(50)
  first.close()
  const second = open('a')
  expect(second.budgets.streams.acquire(1)).toBe(false)
  first.budgets.streams.release(50)
  expect(takeAll(second, 'streams')).toBe(50)
  second.budgets.streams.release(50)
  second.close()
  expect(bounds.addressCount).toBe(0)
})

test('an address without connections is removed once its calls are complete', () => {
  const { bounds, open } = openBounds()
  const one = open('a')
  one.budgets.streams.acquire(2)
  one.close()
  one.budgets.streams.release(1)
  expect(bounds.addressCount).toBe(1)
  one.budgets.streams.release(1)
  expect(bounds.addressCount).toBe(0)
})

test('an address is kept while one of its connections is open', () => {
  const { bounds, open } = openBounds()
  const [first, second] = [open('a'), open('a')]
  second.budgets.streams.acquire(40)
  first.close()
  open('a').budgets.streams.acquire(5)
  expect(bounds.usage.streams).toMatchObject({ used: 45, holders: 1 })
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

describe('an acquisition that exceeds the bound', () => {
  const openTwo = (own: number, other: number, ...names: readonly [string, string]) => {
    const opened = openBounds()
    const [one, two] = [opened.open(names[0]), opened.open(names[1])]
    expect(two.budgets.messages.acquire(other)).toBe(true)
    expect(one.budgets.messages.acquire(own)).toBe(true)
    return { ...opened, one, two }
  }

  test('sheds a larger connection if its own is then below the average', () => {
    const { one, two, closed } = openTwo(248, 252, 'a', 'a')
    expect(one.budgets.messages.acquire(2)).toBe(true) // 250 of an average of 251
    expect(closed).toEqual([two])
  })

  test('is rejected if its connection then has exactly the average', () => {
    const { one, closed } = openTwo(249, 251, 'a', 'a')
    expect(one.budgets.messages.acquire(2)).toBe(false) // 251 of an average of 251
    expect(closed).toEqual([])
  })

  test('sheds a connection of a larger address if its own is then below the average', () => {
    const { one, two, closed } = openTwo(332, 335, 'a', 'b')
    expect(one.budgets.messages.acquire(2)).toBe(true) // 334 of an average of 334.5
    expect(closed).toEqual([two])
  })

  test('is rejected if its address then has exactly the average', () => {
    const { one, closed } = openTwo(332, 334, 'a', 'b')
    expect(one.budgets.messages.acquire(2)).toBe(false) // 334 of an average of 334
    expect(closed).toEqual([])
  })

  test('of a new holder is compared with the average that includes it', () => {
    const { bounds, open, closed } = openBounds()
    const large = open('a')
    large.budgets.messages.acquire(500)
    expect(open('a').budgets.messages.acquire(260)).toBe(true) // below 760 / 2
    expect(closed).toEqual([large])
    expect(bounds.usage.messages).toMatchObject({ used: 260, holders: 1 })
  })
})

test.each([
  [16, 30, 1], // 1/16 of 480 is exactly one connection
  [19, 26, 2], // 1/16 of 494 is 30.9
])('of %d connections with %d each, %d are shed at once', (count, each, expected) => {
  const { open, closed } = openBounds()
  const opened = Array.from({ length: count - 1 }, () => open('a'))
  const last = open('a')
  for (const one of [...opened, last]) one.budgets.messages.acquire(each)
  expect(open('a').budgets.messages.acquire(each - 9)).toBe(true)
  expect(closed).toHaveLength(expected)
  expect(closed[0]).toBe(last)
})

test('a bound counts its holders by connection and by address', () => {
  const { bounds, open } = openBounds()
  const [one, two, other] = [open('a'), open('a'), open('b')]
  const { streams } = bounds.usage
  for (const { budgets } of [one, two, other]) budgets.streams.acquire(2)
  expect([streams.used, streams.holders, one.address.usage.streams.holders]).toEqual([6, 2, 2])
  one.budgets.streams.release(1)
  expect([streams.used, streams.holders, one.address.usage.streams.holders]).toEqual([5, 2, 2])
  one.budgets.streams.release(1)
  expect([streams.used, streams.holders, one.address.usage.streams.holders]).toEqual([4, 2, 1])
  two.budgets.streams.release(2)
  expect([streams.used, streams.holders, one.address.usage.streams.holders]).toEqual([2, 1, 0])
})
