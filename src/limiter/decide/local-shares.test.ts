// The share of a limit that a process admits while the store is unavailable, from its last report.
import { expect, test } from '@jest/globals'
import { limiterOf } from '../../../test/kit/ratelimit/decide-limits.ts'

test.each([
  ['fixed_window', 60, 14],
  ['sliding_window_log', 60, 14],
  ['sliding_window_counter', 60, 14],
  ['token_bucket', 60, 14],
  ['fixed_window', 101, 1],
  ['fixed_window', 102, 0],
])('a share is a fraction of the last reported remainder: %s, %i used', async (...row) => {
  const [algorithm, used, admitted] = row
  const { request, store, clock } = limiterOf(
    `
domain: shop
descriptors:
  - key: client
    rate_limit: {algorithm: ${algorithm}, unit: day, requests_per_unit: 102}
`,
    { replicas: 3 },
  )
  const admittedNow = async () => {
    let count = 0
    while (count < 200 && (await request({ client: 'a' })).code === 'OK') count++
    return count
  }
  for (let hit = 0; hit < used; hit++) await request({ client: 'a' })
  store.isUnavailable = true
  expect(await admittedNow()).toBe(admitted)
  clock.nowUs += 2 * 86_400_000_000 // the whole limit is available
  expect(await admittedNow()).toBe(34)
})

test('a share includes what a bucket regained, but only once', async () => {
  const { request, store, clock } = limiterOf(`
domain: shop
descriptors:
  - key: client
    rate_limit: {algorithm: token_bucket, unit: second, requests_per_unit: 10, burst: 30}
`)
  const admittedNow = async () => {
    let count = 0
    while (count < 100 && (await request({ client: 'a' })).code === 'OK') count++
    return count
  }
  expect(await admittedNow()).toBe(30)
  clock.nowUs += 2_000_000
  store.isUnavailable = true
  expect(await admittedNow()).toBe(20)
  store.isUnavailable = false
  clock.nowUs += 500_000
  expect((await request({ client: 'a' })).code).toBe('OK') // 24 remain by the store's count
  clock.nowUs += 500_000
  store.isUnavailable = true
  // 29 remain by the store's count, of which 10 of the 20 pending hits were not regained.
  expect(await admittedNow()).toBe(29 - 10)
})

test('a bucket gets its burst once while the store is unavailable', async () => {
  const { request, store, clock } = limiterOf(`
domain: shop
descriptors:
  - key: client
    rate_limit: {algorithm: token_bucket, unit: second, requests_per_unit: 10, burst: 30}
`)
  const isAdmitted = async () => (await request({ client: 'a' })).code === 'OK'
  let admitted = 0
  for (let hit = 0; hit < 30; hit++) if (await isAdmitted()) admitted++
  store.isUnavailable = true
  for (let step = 0; step < 100; step++) {
    clock.nowUs += 100_000
    if (await isAdmitted()) admitted++
  }
  while (admitted < 1000 && (await isAdmitted())) admitted++
  expect(admitted).toBeGreaterThanOrEqual(30 + 98)
  expect(admitted).toBeLessThanOrEqual(30 + 100)
})

test('a reset by an operator is effective even while the store is unavailable', async () => {
  const { request, reset, store } = limiterOf(`
domain: shop
descriptors:
  - {key: client, rate_limit: {unit: day, requests_per_unit: 2}}
`)
  const codes = async () => {
    const two = [await request({ client: 'a' }), await request({ client: 'a' })]
    return two.map(({ code }) => code)
  }
  await codes()
  store.isUnavailable = true
  expect(await codes()).toEqual(['OVER_LIMIT', 'OVER_LIMIT'])
  await expect(reset({ client: 'a' })).rejects.toThrow('unavailable')
  expect(await codes()).toEqual(['OK', 'OK'])
  expect(await codes()).toEqual(['OVER_LIMIT', 'OVER_LIMIT'])
})

test('the share of a client is not restored if many clients evict its report', async () => {
  const { request, store } = limiterOf(`
domain: shop
descriptors:
  - {key: client, rate_limit: {unit: day, requests_per_unit: 1}}
`)
  store.isUnavailable = true
  expect((await request({ client: 'a' })).code).toBe('OK')
  for (let n = 0; n < 51_000; n++) await request({ client: String(n) })
  expect((await request({ client: 'a' })).code).toBe('OVER_LIMIT')
})
