// A drain of an Envoy with scripted responses, on a simulated clock.
import { expect, test } from '@jest/globals'
import { type DrainDeps, drainEnvoy } from './drain-envoy.ts'
import type { ListenerLoad } from './envoy.ts'

const log = { debug: () => 0, info: () => 0, warn: () => 0, error: () => 0 } as never
const noLoad: ListenerLoad = { connections: 0, requests: 0, accepted: 7 }

type Load = ListenerLoad | 'exited' | 'unresponsive'

/** An Envoy that returns scripted responses in order, the last one forever. */
function scriptedEnvoy(script: {
  starts?: ('started' | 'exited' | 'unresponsive')[]
  loads: Load[]
}) {
  const calls = { starts: 0, reads: 0 }
  const at = <T>(list: readonly T[], i: number) => list[Math.min(i, list.length - 1)] as T
  const envoy: DrainDeps['envoy'] = {
    startDrain: () => Promise.resolve(at(script.starts ?? ['started'], calls.starts++)),
    readListenerLoad: () => Promise.resolve(at(script.loads, calls.reads++)),
  }
  return { envoy, calls }
}

function drain(envoy: DrainDeps['envoy'], times: { msMax?: number; quietMs?: number } = {}) {
  let nowMs = 1000
  return drainEnvoy({
    envoy,
    msMax: 30_000,
    quietMs: 500,
    ...times,
    nowMs: () => nowMs,
    pause: (ms) => {
      nowMs += ms
      return Promise.resolve()
    },
    log,
  })
}

async function drainWith(loads: Load[], times?: { msMax?: number; quietMs?: number }) {
  return drain(scriptedEnvoy({ loads }).envoy, times)
}

test('Envoy has drained once no connection is left and no new one has arrived', async () => {
  const busy = { connections: 2, requests: 1, accepted: 7 }
  const result = await drainWith([busy, { ...busy, requests: 0 }, noLoad])
  expect(result).toEqual({ outcome: 'drained', served: noLoad, tookMs: 600 })
})

test('a connection that opens and closes between polls restarts the quiet time', async () => {
  const result = await drainWith([noLoad, noLoad, noLoad, { ...noLoad, accepted: 8 }, noLoad])
  expect(result.outcome).toBe('drained')
  expect(result.tookMs).toBe(400 + 500)
})

test.each([
  ['idle', { connections: 3, requests: 0, accepted: 9 }],
  ['busy', { connections: 3, requests: 2, accepted: 9 }],
] as const)('the load at the deadline determines the outcome %s', async (outcome, served) => {
  expect(await drainWith([served])).toEqual({ outcome, served, tookMs: 30_000 })
})

test('a stream of new connections does not extend the deadline', async () => {
  const loads = Array.from({ length: 1000 }, (_, i) => ({ ...noLoad, accepted: i }))
  expect(await drainWith(loads)).toMatchObject({ outcome: 'drained', tookMs: 30_000 })
})

test('if Envoy never responds, the outcome at the deadline is unknown', async () => {
  const { envoy, calls } = scriptedEnvoy({ starts: ['unresponsive'], loads: [noLoad] })
  const result = await drain(envoy, { msMax: 1000 })
  expect(result).toEqual({ outcome: 'unknown', served: undefined, tookMs: 1000 })
  expect(calls).toEqual({ starts: 11, reads: 0 })
})

test('the drain command is retried until Envoy confirms it', async () => {
  const { envoy, calls } = scriptedEnvoy({
    starts: ['unresponsive', 'unresponsive', 'started'],
    loads: [noLoad],
  })
  expect((await drain(envoy)).outcome).toBe('drained')
  expect(calls.starts).toBe(3)
})

test('a timed-out poll keeps the last reported load', async () => {
  const served = { connections: 1, requests: 1, accepted: 7 }
  expect(await drainWith([served, 'unresponsive'])).toMatchObject({ outcome: 'busy', served })
})

test('an Envoy that has exited completes the drain immediately', async () => {
  expect(await drainWith(['exited'])).toMatchObject({ outcome: 'exited', tookMs: 0 })
})
