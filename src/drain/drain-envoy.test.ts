// A drain against an Envoy that says what the test lets it say, by a clock of the test's own.
import { expect, test } from '@jest/globals'
import { type DrainDeps, drainEnvoy } from './drain-envoy.ts'
import type { Served } from './envoy.ts'

const log = { debug: () => 0, info: () => 0, warn: () => 0, error: () => 0 } as never
const quiet: Served = { connections: 0, requests: 0, accepted: 7 }

type Said = Served | 'gone' | 'silent'

/** An Envoy that says one thing after the other, the last one for ever. */
function envoyOf(script: { begins?: ('begun' | 'gone' | 'silent')[]; says: Said[] }) {
  const seen = { begun: 0, looks: 0 }
  const at = <T>(list: readonly T[], place: number) => list[Math.min(place, list.length - 1)] as T
  const envoy: DrainDeps['envoy'] = {
    beginDrain: () => Promise.resolve(at(script.begins ?? ['begun'], seen.begun++)),
    readServed: () => Promise.resolve(at(script.says, seen.looks++)),
  }
  return { envoy, seen }
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

async function outcomeOf(says: Said[], times?: { msMax?: number; quietMs?: number }) {
  return drain(envoyOf({ says }).envoy, times)
}

test('it has drained once no connection is left and none has come for a while', async () => {
  const busy = { connections: 2, requests: 1, accepted: 7 }
  const end = await outcomeOf([busy, { ...busy, requests: 0 }, quiet])
  expect(end).toEqual({ outcome: 'drained', served: quiet, tookMs: 600 })
})

test('a connection that came and went between two looks is seen, and waited for', async () => {
  const end = await outcomeOf([quiet, quiet, quiet, { ...quiet, accepted: 8 }, quiet])
  expect(end.outcome).toBe('drained')
  expect(end.tookMs).toBe(400 + 500)
})

test.each([
  ['idle', { connections: 3, requests: 0, accepted: 9 }],
  ['busy', { connections: 3, requests: 2, accepted: 9 }],
] as const)('what is left when its time is over makes it %s', async (outcome, served) => {
  expect(await outcomeOf([served])).toEqual({ outcome, served, tookMs: 30_000 })
})

test('connections that never cease to come are no reason to stay beyond its time', async () => {
  const says = Array.from({ length: 1000 }, (_, i) => ({ ...quiet, accepted: i }))
  expect(await outcomeOf(says)).toMatchObject({ outcome: 'drained', tookMs: 30_000 })
})

test('an Envoy that never answers is waited for, and unknown', async () => {
  const { envoy, seen } = envoyOf({ begins: ['silent'], says: [quiet] })
  const end = await drain(envoy, { msMax: 1000 })
  expect(end).toEqual({ outcome: 'unknown', served: undefined, tookMs: 1000 })
  expect(seen).toEqual({ begun: 11, looks: 0 })
})

test('it is told until it has heard, and then no more', async () => {
  const { envoy, seen } = envoyOf({ begins: ['silent', 'silent', 'begun'], says: [quiet] })
  expect((await drain(envoy)).outcome).toBe('drained')
  expect(seen.begun).toBe(3)
})

test('an answer that is late is no sign that nobody is served', async () => {
  const served = { connections: 1, requests: 1, accepted: 7 }
  expect(await outcomeOf([served, 'silent'])).toMatchObject({ outcome: 'busy', served })
})

test('an Envoy that has ended ends it at once', async () => {
  expect(await outcomeOf(['gone'])).toMatchObject({ outcome: 'gone', tookMs: 0 })
})
