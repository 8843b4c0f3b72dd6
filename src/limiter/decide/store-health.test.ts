// Whether the store can be used, from its connections and from what its guard says.
import { expect, test } from '@jest/globals'
import { createStoreHealth } from './store-health.ts'

function followed(...connections: string[]) {
  const told: string[] = []
  const health = createStoreHealth(connections, (state) => told.push(state))
  return { ...health, told }
}

test('each change is told at once, and once', () => {
  const { noteConnection, noteAway, told } = followed('counters')
  noteConnection('counters', false)
  noteConnection('counters', false)
  noteAway(true)
  expect(told).toEqual(['down'])
  noteConnection('counters', true)
  expect(told).toEqual(['down']) // it stands, but nobody knows yet whether it counts
  noteAway(false)
  expect(told).toEqual(['down', 'up'])
  noteConnection('counters', false)
  noteConnection('counters', true)
  expect(told).toEqual(['down', 'up', 'down', 'up'])
})

test('it is up only where all connections stand', () => {
  const { noteConnection, told } = followed('counters', 'per-second')
  noteConnection('per-second', true)
  expect(told).toEqual([])
  noteConnection('counters', true)
  expect(told).toEqual(['up'])
  noteConnection('counters', false)
  noteConnection('per-second', true)
  expect(told).toEqual(['up', 'down'])
})

test('a store that answers its connections but no call is down', () => {
  const { noteConnection, noteAway, told } = followed('counters')
  noteConnection('counters', true)
  noteAway(true)
  noteConnection('counters', false)
  noteConnection('counters', true)
  expect(told).toEqual(['up', 'down'])
})

test('a probe that was answered proves that all connections stand', () => {
  const { noteConnection, noteAway, told } = followed('counters', 'per-second')
  noteAway(true)
  noteConnection('counters', false)
  noteAway(false)
  expect(told).toEqual(['down', 'up'])
})
