// Store health, derived from the connections and the circuit breaker.
import { expect, test } from '@jest/globals'
import { trackStoreHealth } from './store-health.ts'

function tracked(...connections: string[]) {
  const reported: string[] = []
  const health = trackStoreHealth(connections, (state) => reported.push(state))
  return { ...health, reported }
}

test('reports each change immediately, and once', () => {
  const { setConnection, setCircuit, reported } = tracked('counters')
  setConnection('counters', false)
  setConnection('counters', false)
  setCircuit(true, false)
  expect(reported).toEqual(['down'])
  setConnection('counters', true)
  expect(reported).toEqual(['down']) // connected, but the circuit is still open
  setCircuit(false, true)
  expect(reported).toEqual(['down', 'up'])
  setConnection('counters', false)
  setConnection('counters', true)
  expect(reported).toEqual(['down', 'up', 'down', 'up'])
})

test('is up only if all connections are established', () => {
  const { setConnection, reported } = tracked('counters', 'per-second')
  setConnection('per-second', true)
  expect(reported).toEqual([])
  setConnection('counters', true)
  expect(reported).toEqual(['up'])
  setConnection('counters', false)
  setConnection('per-second', true)
  expect(reported).toEqual(['up', 'down'])
})

test('a store that accepts connections but does not respond is down', () => {
  const { setConnection, setCircuit, reported } = tracked('counters')
  setConnection('counters', true)
  setCircuit(true, false)
  setConnection('counters', false)
  setConnection('counters', true)
  expect(reported).toEqual(['up', 'down'])
})

test('a successful probe proves that all connections are established', () => {
  const { setConnection, setCircuit, reported } = tracked('counters', 'per-second')
  setCircuit(true, false)
  setConnection('counters', false)
  setCircuit(false, true)
  expect(reported).toEqual(['down', 'up'])
})

test('a delayed response closes the circuit, but proves nothing about other connections', () => {
  const { setConnection, setCircuit, reported } = tracked('counters', 'per-second')
  setConnection('counters', true)
  setConnection('per-second', false)
  setCircuit(true, false)
  setCircuit(false, false)
  expect(reported).toEqual(['down'])
})
