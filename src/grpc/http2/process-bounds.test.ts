// Shares of what a process may hold: of addresses and of connections, under attack by many.
import { expect, jest, test } from '@jest/globals'
import { ProcessBounds, processMax, type Share } from './process-bounds.ts'

const max = { ...processMax, connections: 40, streams: 100, messages: 1000 }

function openBounds() {
  const shed = jest.fn<(kind: string) => void>()
  const bounds = new ProcessBounds(shed, max)
  const closed: Share[] = []
  const open = (address: string): Share => {
    const share = bounds.open(address, () => {
      const { messages, streams } = one.parts
      messages.give(messages.used)
      streams.give(streams.used)
      bounds.close(one)
      closed.push(one)
    })
    if (share === undefined) throw new Error('it was not taken')
    const one = share
    return one
  }
  return { bounds, open, closed, shed }
}

/** Takes by ones until no more is given. */
function takeAll({ parts }: Share, kind: 'messages' | 'streams'): number {
  let taken = 0
  while (taken < 10_000 && parts[kind].take(1)) taken += 1
  return taken
}

test('one address has half, two a third each, and something is left for the next', () => {
  const { bounds, open } = openBounds()
  expect(takeAll(open('a'), 'messages')).toBe(500)
  expect(open('b').parts.messages.take(250)).toBe(true)
  expect(open('c').parts.messages.take(125)).toBe(true)
  expect(bounds.sums.messages.used).toBe(875)
})

test('who holds less than the average is given room by those that hold the most', () => {
  const { bounds, open, closed, shed } = openBounds()
  const greedy = Array.from({ length: 10 }, () => open('a'))
  for (const one of greedy) one.parts.messages.take(50)
  const honest = open('a')
  expect(greedy[0]?.parts.messages.take(1)).toBe(false)
  expect(closed).toEqual([])
  expect(honest.parts.messages.take(30)).toBe(true)
  expect(closed).toEqual([greedy[9]])
  expect(shed.mock.calls.every(([kind]) => kind === 'messages')).toBe(true)
  expect(bounds.sums.messages.used).toBe(480)
})

test('an address that holds less than the average is given room by those that hold more', () => {
  const { bounds, open, closed } = openBounds()
  for (let i = 0; i < 30; i += 1) takeAll(open(`attacker ${i}`), 'streams')
  expect(open('honest').parts.streams.take(1)).toBe(true)
  expect(closed.length).toBeGreaterThan(0)
  expect(bounds.sums.streams.used).toBeLessThanOrEqual(max.streams)
})

test('connections beyond the share of their address are not taken', () => {
  const { bounds, open } = openBounds()
  const opened = Array.from({ length: 20 }, () => open('a'))
  expect(bounds.open('a', () => undefined)).toBeUndefined()
  open('b')
  for (const one of opened) bounds.close(one)
  expect(bounds.sums.connections).toMatchObject({ used: 1, holders: 1 })
  open('a')
})

test('what does not fit at once is rejected, though nothing is held yet', () => {
  const { open, shed } = openBounds()
  const { messages } = open('a').parts
  expect(messages.take(501)).toBe(false)
  expect(shed.mock.calls).toEqual([['messages']])
  expect(messages.take(500)).toBe(true)
  expect(shed).toHaveBeenCalledTimes(1)
})

test('a connection that closes twice gives its place back once', () => {
  const { bounds, open } = openBounds()
  const [one] = [open('a'), open('a')]
  for (let times = 0; times < 2; times += 1) bounds.close(one)
  expect(bounds.sums.connections.used).toBe(1)
})

test('an address is remembered while one of its connections is open', () => {
  const { bounds, open } = openBounds()
  const [first, second] = [open('a'), open('a')]
  second.parts.streams.take(40)
  bounds.close(first)
  open('a').parts.streams.take(5)
  expect(bounds.sums.streams).toMatchObject({ used: 45, holders: 1 })
})

test('the address that holds the most is relieved first, even of smaller connections', () => {
  const { open, closed } = openBounds()
  const many = Array.from({ length: 6 }, () => open('many'))
  for (const one of many) one.parts.messages.take(80)
  open('large').parts.messages.take(200)
  expect(open('honest').parts.messages.take(161)).toBe(true)
  expect(closed).toEqual([many[5]])
})

test('of an address the connection that holds the most is shed, though another is newer', () => {
  const { open, closed } = openBounds()
  const [large, newer] = [open('a'), open('a')]
  large.parts.messages.take(300)
  newer.parts.messages.take(100)
  expect(open('honest').parts.messages.take(301)).toBe(true)
  expect(closed).toEqual([large])
})

test('a connection that holds some is compared with the average of those that hold some', () => {
  const { open, closed } = openBounds()
  const [larger, smaller] = [open('a'), open('a')]
  larger.parts.streams.take(30)
  smaller.parts.streams.take(20)
  expect(smaller.parts.streams.take(1)).toBe(true)
  expect(closed).toEqual([larger])
})
