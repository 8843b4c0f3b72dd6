// The controller's xDS server with real limiters, which reconnect, reject versions and stop to
// respond, and with hostile clients.
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals'
import { freePort } from '../../dependencies/free-ports.ts'
import {
  type ControllerAdsServer,
  startControllerAdsServer,
} from '../../kit/ratelimit/controller-ads-server.ts'
import type { Limiter } from '../../kit/ratelimit/limiter.ts'
import { perHour, shopConfig, startXdsLimiter } from '../../kit/ratelimit/xds-limiter.ts'
import { waitFor } from '../../kit/wait-for.ts'

const KEEPALIVE_MS = 2000

let server: ControllerAdsServer
let limiters: readonly Limiter[] = []
const cleanups: (() => unknown)[] = []

/** A version whose only limit denies each call with the descriptor `version`. */
const denying = (version: string) =>
  shopConfig({ key: version, rateLimit: { unit: 'SECOND', requestsPerUnit: 0 } })

/** Whether each limiter denies calls with the descriptor `version`. */
async function denied(version: string, of = limiters): Promise<readonly boolean[]> {
  const replies = await Promise.all(of.map((limiter) => limiter.decide({ [version]: 'x' })))
  return replies.map(({ overallCode }) => overallCode === 'OVER_LIMIT')
}

beforeAll(async () => {
  server = await startControllerAdsServer({ port: await freePort(), keepaliveMs: KEEPALIVE_MS })
  server.publish('v0', denying('v0'))
  const start = () => startXdsLimiter(server.port)
  limiters = await Promise.all([start(), start()])
}, 60_000)
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp()
})
afterAll(async () => {
  await Promise.all(limiters.map((limiter) => limiter.stop()))
  await server.close()
})

test('a published version becomes active in every limiter', async () => {
  const replicas = await server.active('v0', 'v0')
  expect(replicas.map(({ node, address }) => [node, address])).toEqual([
    ['default', '127.0.0.1'],
    ['default', '127.0.0.1'],
  ])
  server.publish('v1', denying('v1'))
  await server.active('v1', 'v1')
  expect(await denied('v1')).toEqual([true, true])
  expect(await denied('v0')).toEqual([false, false])
})

test('the limiters report the hits that only shadow mode admits', async () => {
  const limit = { unit: 'SECOND', requestsPerUnit: 0 }
  server.publish('audit', shopConfig({ key: 'audited', rateLimit: limit, shadowMode: true }))
  await server.active('audit', 'audit')
  const calls = limiters.flatMap((limiter) => [1, 2].map(() => limiter.decide({ audited: 'x' })))
  const replies = await Promise.all(calls)
  expect(replies.map(({ overallCode }) => overallCode)).toEqual(['OK', 'OK', 'OK', 'OK'])
  await waitFor('the reports', () => [...server.audited.values()].join() === '4')
  expect(await server.faults()).toMatchObject({ protocol: 0, type: 0, abuse: 0 })
})

test('a limiter that hangs leaves, and receives the version when it resumes', async () => {
  const [first, second] = limiters
  first?.child.kill('SIGSTOP')
  cleanups.push(() => first?.child.kill('SIGCONT'))
  server.publish('v2', denying('v2'))
  await waitFor('the limiter to leave', () => server.replicas().length === 1, 5 * 2 * KEEPALIVE_MS)
  await server.active('v2')
  expect(await denied('v2', second && [second])).toEqual([true])
  first?.child.kill('SIGCONT')
  await server.active('v2', 'v2')
  expect(await denied('v2')).toEqual([true, true])
})

test('a stall of the controller disconnects no limiter', async () => {
  const before = await server.faults()
  for (let stalls = 0; stalls < 3; stalls += 1) {
    const endMs = performance.now() + 1.2 * KEEPALIVE_MS
    while (performance.now() < endMs);
    await new Promise(setImmediate)
  }
  await server.active('v2', 'v2')
  expect(await server.faults()).toEqual(before)
})

test('a rejected version leaves the last good one active', async () => {
  server.publish('v3', denying('v3'))
  await server.active('v3', 'v3')
  server.publish('bad', { ...denying('bad'), domain: '' })
  await waitFor('the rejections', () => server.replicas().every(({ rejected }) => rejected))
  for (const { active, rejected } of server.replicas()) {
    expect([active, rejected]).toMatchObject(['v3', { version: 'bad' }])
    expect(rejected?.message).toContain('domain')
  }
  expect(await denied('v3')).toEqual([true, true])
  expect(server.log.at(-1)).toContain('a limiter rejected the version bad: ')
  expect(await server.faults()).toMatchObject({ rejected: 2 })
  server.publish('v4', denying('v4'))
  const replicas = await server.active('v4', 'v4')
  expect(replicas.map(({ rejected }) => rejected)).toEqual([undefined, undefined])
})

test('200 versions in a row end with the last one', async () => {
  for (let i = 1; i <= 200; i += 1) {
    server.publish(`flap-${i}`, denying(`flap-${i}`))
    if (i % 20 === 0) await new Promise(setImmediate)
  }
  await server.active('flap-200', 'flap-200')
  expect(await denied('flap-200')).toEqual([true, true])
})

test('limiters keep their rules while the server restarts, and reconnect', async () => {
  const { port } = server
  await server.close()
  expect(await denied('flap-200')).toEqual([true, true])
  server = await startControllerAdsServer({ port, keepaliveMs: KEEPALIVE_MS })
  server.publish('v5', denying('v5'), {
    ...shopConfig(perHour('other', 1)),
    domain: 'other',
    name: 'other',
  })
  await server.active('v5', 'v5')
  expect(await denied('v5')).toEqual([true, true])
})

test('a limiter that is killed leaves', async () => {
  const [first, second] = limiters
  first?.child.kill('SIGKILL')
  await server.active('v5')
  expect(await denied('v5', second && [second])).toEqual([true])
})
