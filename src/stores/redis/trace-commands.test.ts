// That each question to Redis has a span of its own in a traced request, and none elsewhere.
import { expect, test } from '@jest/globals'
import { recordSpans } from '../../../test/parts/recording-spans.ts'
import { StoreError } from '../../resilience/store-error.ts'
import type { LinkCacheCommands } from './link-cache.ts'
import { traceBatches, traceCommands } from './trace-commands.ts'

const commands: LinkCacheCommands & { isAway(): boolean } = {
  get: () => Promise.resolve('value'),
  putIfAbsent: () => Promise.resolve(true),
  replace: () => Promise.resolve(true),
  del: () => Promise.reject(new StoreError('away', { outcome: 'not-done' })),
  isAway: () => false,
}
const batches = { add: () => Promise.resolve([]) }

test('where tracing is off all stays as it is', () => {
  expect(traceCommands(commands, undefined)).toBe(commands)
  expect(traceBatches(batches, undefined)).toBe(batches)
})

test('commands of a traced request have spans without their keys', async () => {
  const spans = recordSpans()
  const traced = traceCommands(commands, spans)
  const ask = async () => {
    await traced.get('key')
    await traced.putIfAbsent({ key: 'key', value: 'v', ms: 1 })
    await traced.replace({ key: 'key', from: 'a', value: 'v', ms: 1 })
    await expect(traced.del('key')).rejects.toThrow('away')
    await traceBatches(batches, spans).add(0, [])
  }
  const request = spans.serve({ traceparent: 'sampled' }, { name: 'GET /', facts: {} })
  if (request !== undefined) await spans.within(request, ask)
  const asked = spans.recorded.slice(1)
  expect(asked.map(({ name }) => name)).toEqual(['GET', 'SET', 'EVALSHA', 'DEL', 'EVALSHA'])
  expect(asked.map(({ failure }) => failure)).toEqual([
    undefined,
    undefined,
    undefined,
    'not-done',
    undefined,
  ])
  expect(asked.every(({ within, isEnded }) => within === 'GET /' && isEnded)).toBe(true)
  expect(JSON.stringify(asked)).not.toContain('key')
  await ask()
  expect(spans.recorded).toHaveLength(6)
  expect(traced.isAway()).toBe(false)
})
