// The time until the next attempt doubles up to the maximum; jitter only reduces it.
import { expect, test } from '@jest/globals'
import { parseConfig } from '../../config/config.ts'
import { type FailureReason, retryDelayMs } from './retry-delay.ts'
import { xdsSettings } from './settings.ts'

function delaysOf(reason: FailureReason, env: Readonly<Record<string, string>>, random = 0) {
  const config = parseConfig(xdsSettings, env)
  return [1, 2, 3, 4, 100].map((failures) => {
    return retryDelayMs(config, { reason, failures }, () => random)
  })
}

test('before the server is connected, the connect interval doubles', () => {
  expect(delaysOf('connect', {})).toEqual([3000, 6000, 12_000, 24_000, 60_000])
  expect(delaysOf('tls_files', {})).toEqual(delaysOf('connect', {}))
})

test('after a stream, the initial interval doubles', () => {
  expect(delaysOf('stream', {})).toEqual([10_000, 20_000, 40_000, 60_000, 60_000])
  const env = { XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '2m' }
  expect(delaysOf('closed', env)).toEqual([60_000, 60_000, 60_000, 60_000, 60_000])
})

test('jitter replaces a share of the time', () => {
  expect(delaysOf('stream', {}, 1)[0]).toBe(5000)
  expect(delaysOf('stream', { XDS_CLIENT_BACKOFF_RANDOM_FACTOR: '2' }, 0.5)[0]).toBe(5000)
  expect(delaysOf('stream', { XDS_CLIENT_BACKOFF_JITTER: 'false' }, 1)[0]).toBe(10_000)
})
