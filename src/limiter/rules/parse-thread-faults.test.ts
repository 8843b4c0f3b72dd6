// Threads that fail, stop or report more rules than the heap has space for, and which threads are
// terminated.
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { getHeapStatistics } from 'node:v8'
import type { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { createThreadParser, type ThreadMessage } from './parse-in-thread.ts'
import { TransientParseError } from './rule-source.ts'

const MIB = 1024 * 1024
/** The heap that parse-in-thread.ts plans for a descriptor. */
const DESCRIPTOR_BYTES = 800

const options = { mergeDomains: false }
const files = [{ name: 'a.yaml', text: 'domain: shop\ndescriptors: [{key: k}]\n' }]

let threads: Worker[]
let onStart: ((thread: Worker) => void) | undefined
const onThread = (message: unknown) => {
  const { worker } = message as { worker: Worker }
  threads.push(worker)
  onStart?.(worker)
}
beforeEach(() => {
  threads = []
  onStart = undefined
  subscribe('worker_threads', onThread)
})
afterEach(() => {
  unsubscribe('worker_threads', onThread)
})

/** The ids of the started threads; that of a terminated one is -1. */
const threadIds = () => threads.map(({ threadId }) => threadId)

describe('a thread that', () => {
  test('fails results in an error with the cause, and is terminated', async () => {
    const parsing = createThreadParser(options).parse([undefined as never])
    const error = await parsing.catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({
      message: 'the thread that parses the rules failed',
      cause: expect.objectContaining({ name: 'TypeError' }),
    })
    expect(threadIds()).toEqual([-1])
  })

  test('has parsed a set is terminated', async () => {
    const parsed = await createThreadParser(options).parse(files)
    expect('rules' in parsed && [...parsed.rules.keys()]).toEqual(['shop'])
    expect(threadIds()).toEqual([-1])
  })

  test('cannot start results in a temporary error', async () => {
    const uncloneable = { mergeDomains: false, denyConsumes: () => true } as never
    const parsing = createThreadParser(uncloneable).parse(files)
    const error = await parsing.catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(TransientParseError)
    expect(error).toMatchObject({ cause: expect.objectContaining({ name: 'DataCloneError' }) })
  })
})

test('a parser that is stopped starts no thread', async () => {
  const parser = createThreadParser(options)
  await parser.stop()
  await expect(parser.parse(files)).rejects.toThrow('the process is stopping')
  expect(threads).toEqual([])
})

test('descriptors that need the whole heap are rejected, since some of it is in use', async () => {
  const { heap_size_limit: limit } = getHeapStatistics()
  const descriptors = Math.floor(limit / DESCRIPTOR_BYTES)
  onStart = (thread) => {
    queueMicrotask(() => {
      thread.emit('message', { warnings: [], descriptors } satisfies ThreadMessage)
    })
  }
  const mib = Math.ceil((descriptors * DESCRIPTOR_BYTES) / MIB)
  await expect(createThreadParser(options).parse(files)).rejects.toThrow(
    new RegExp(
      `^the rules need about ${mib} MiB of heap, and \\d{2,4} MiB of ` +
        `${Math.ceil(limit / MIB)} MiB are in use: raise --max-old-space-size`,
    ),
  )
  expect(threadIds()).toEqual([-1])
})

test('the code of the thread cannot run in the main thread', async () => {
  await expect(import('./rule-thread.ts')).rejects.toThrow(
    'Cannot parse rules: not started by parse-in-thread.ts',
  )
})
