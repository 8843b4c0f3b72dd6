// Store health, derived from the connections and the circuit breaker.
import { expect, test } from '@jest/globals'
import { trackStoreHealth } from './store-health.ts'

function tracked(...connections: string[]) {
  const reported: string[] = []
  const health = trackStoreHealth(connections, (state) => reported.push(state))
  return { ...health, reported }
}

test('reports each change at once, and once', () => {
  const { noteConnection, noteCircuit, reported } = tracked('counters')
  noteConnection('counters', false)
  noteConnection('counters', false)
  noteCircuit(true)
  expect(reported).toEqual(['down'])
  noteConnection('counters', true)
  expect(reported).toEqual(['down']) // connected, but the circuit breaker is still open
  noteCircuit(false)
  expect(reported).toEqual(['down', 'up'])
  noteConnection('counters', false)
  noteConnection('counters', true)
  expect(reported).toEqual(['down', 'up', 'down', 'up'])
})

test('is up only if all connections are established', () => {
  const { noteConnection, reported } = tracked('counters', 'per-second')
  noteConnection('per-second', true)
  expect(reported).toEqual([])
  noteConnection('counters', true)
  expect(reported).toEqual(['up'])
  noteConnection('counters', false)
  noteConnection('per-second', true)
  expect(reported).toEqual(['up', 'down'])
})

test('a store that accepts connections but responds to no call is down', () => {
  const { noteConnection, noteCircuit, reported } = tracked('counters')
  noteConnection('counters', true)
  noteCircuit(true)
  noteConnection('counters', false)
  noteConnection('counters', true)
  expect(reported).toEqual(['up', 'down'])
})

test('a successful probe proves that all connections are established', () => {
  const { noteConnection, noteCircuit, reported } = tracked('counters', 'per-second')
  noteCircuit(true)
  noteConnection('counters', false)
  noteCircuit(false)
  expect(reported).toEqual(['down', 'up'])
})
