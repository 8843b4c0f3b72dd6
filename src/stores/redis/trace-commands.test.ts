// Each Redis command of a traced request has a span; other commands have none.
import { expect, test } from '@jest/globals'
import { recordSpans } from '../../../test/kit/recording-spans.ts'
import { StoreError } from '../../resilience/store-error.ts'
import type { LinkCacheCommands } from './link-cache.ts'
import { traceBatches, traceCommands } from './trace-commands.ts'

const commands: LinkCacheCommands & { isOpen(): boolean } = {
  get: () => Promise.resolve('value'),
  putIfAbsent: () => Promise.resolve(true),
  replace: () => Promise.resolve(true),
  del: () => Promise.reject(new StoreError('unavailable', { outcome: 'not-done' })),
  isOpen: () => false,
}
const batches = { add: () => Promise.resolve([]) }

test('commands are not wrapped if tracing is off', () => {
  expect(traceCommands(commands, undefined)).toBe(commands)
  expect(traceBatches(batches, undefined)).toBe(batches)
})

test('commands of a traced request have spans without their keys', async () => {
  const spans = recordSpans()
  const traced = traceCommands(commands, spans)
  const runAll = async () => {
    await traced.get('key')
    await traced.putIfAbsent({ key: 'key', value: 'v', ms: 1 })
    await traced.replace({ key: 'key', from: 'a', value: 'v', ms: 1 })
    await expect(traced.del('key')).rejects.toThrow('unavailable')
    await traceBatches(batches, spans).add(0, [])
  }
  const request = spans.startServerSpan(
    { traceparent: 'sampled' },
    { name: 'GET /', attributes: {} },
  )
  if (request !== undefined) await spans.runInSpan(request, runAll)
  const calls = spans.recorded.slice(1)
  expect(calls.map(({ name }) => name)).toEqual(['GET', 'SET', 'EVALSHA', 'DEL', 'EVALSHA'])
  expect(calls.map(({ failure }) => failure)).toEqual([
    undefined,
    undefined,
    undefined,
    'not-done',
    undefined,
  ])
  expect(calls.every(({ within, isClosed }) => within === 'GET /' && isClosed)).toBe(true)
  expect(JSON.stringify(calls)).not.toContain('key')
  await runAll()
  expect(spans.recorded).toHaveLength(6)
  expect(traced.isOpen()).toBe(false)
})
