// Loading blocked targets from files: in steps, in a worker thread, and the bounds.
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { buildBlockedTable, FAULTS_MAX } from './build-blocked-table.ts'
import {
  createBlockedTargetsLoader,
  FILES_BYTES_MAX,
  THREAD_BYTES_MIN,
} from './load-blocked-targets.ts'

let folder: string
let loader: ReturnType<typeof createBlockedTargetsLoader>

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-blocked-'))
  loader = createBlockedTargetsLoader()
})
afterEach(async () => {
  await loader.stop()
  await rm(folder, { recursive: true })
})

async function write(name: string, content: string): Promise<string> {
  const path = join(folder, name)
  await writeFile(path, content)
  return path
}

/** A file with this number of entries, large enough for a thread. */
async function writeLarge(entries: number): Promise<string> {
  const comment = `# ${'x'.repeat(THREAD_BYTES_MIN)}\n`
  const lines = Array.from({ length: entries }, (_, i) => `host${i}.evil.example\n`)
  return write('large.txt', comment + lines.join(''))
}

test('all files are loaded; faulty lines are reported with file and line', async () => {
  const first = await write('a.txt', '# list\nevil.example\n\n*.other.example\r\ncom')
  const second = await write('b.txt', 'sites.example/bad\r\nevil.example\n')
  const { value, entries, faults } = await loader.load([first, second])
  expect(entries).toBe(2)
  expect(faults).toEqual([
    `${first}:4: the entry must not be a pattern: a host includes all its subdomains`,
    `${first}:5: the entry must not be a host of one label, such as a top-level domain: com`,
  ])
  expect(value?.has('http://www.evil.example/')).toBe(true)
  expect(value?.has('http://sites.example/bad')).toBe(true)
  expect(value?.has('http://other.example/')).toBe(false)
})

test('files without entries result in no list', async () => {
  const path = await write('empty.txt', '# nothing\n')
  expect(await loader.load([path])).toEqual({ value: undefined, entries: 0, faults: [] })
  expect(await loader.load([])).toEqual({ value: undefined, entries: 0, faults: [] })
})

test('large files are loaded by a thread, with the same result', async () => {
  const [large, small] = [await writeLarge(20_000), await write('small.txt', 'com\na.example/b\n')]
  const before = process.threadCpuUsage()
  const { value, entries, faults } = await loader.load([large, small])
  const { user } = process.threadCpuUsage(before)
  expect([entries, faults.length]).toEqual([20_001, 1])
  expect(value?.has('https://host19999.evil.example/')).toBe(true)
  expect(value?.has('https://host20000.evil.example/')).toBe(false)
  expect(value?.has('https://a.example/b')).toBe(true)
  expect(user / 1000).toBeLessThan(1000)
})

test('files that cannot be read are an error, in steps and in the thread', async () => {
  const large = await writeLarge(1)
  await expect(loader.load([join(folder, 'absent')])).rejects.toThrow('ENOENT')
  await expect(loader.load([large, folder])).rejects.toThrow('EISDIR')
})

test('files that are too large are an error', async () => {
  const path = await write('huge.txt', '')
  await truncate(path, FILES_BYTES_MAX + 1)
  const message = `the files have ${FILES_BYTES_MAX + 1} bytes: at most ${FILES_BYTES_MAX}`
  await expect(loader.load([path])).rejects.toThrow(message)
})

test('small files are loaded in steps, also if a thread would take too long', async () => {
  const lines = Array.from({ length: 1200 }, (_, i) => `host${i}.evil.example\n`).join('')
  const comment = '#'.repeat(THREAD_BYTES_MIN - lines.length - 1)
  const paths = [await write('a.txt', lines), await write('b.txt', comment)]
  const slow = createBlockedTargetsLoader(1)
  const { value, entries } = await slow.load(paths)
  expect(entries).toBe(1200)
  expect(value?.has('https://host0.evil.example/')).toBe(true)
  expect(value?.has('https://host1199.evil.example/')).toBe(true)
  await write('b.txt', `${comment}#`) // a thread loads files of this size
  await expect(slow.load(paths)).rejects.toThrow('took longer than 1 ms')
})

test('a thread that takes too long is stopped', async () => {
  const threads: Worker[] = []
  const note = (message: unknown) => threads.push((message as { worker: Worker }).worker)
  subscribe('worker_threads', note)
  try {
    const slow = createBlockedTargetsLoader(1)
    await expect(slow.load([await writeLarge(50_000)])).rejects.toThrow('took longer than 1 ms')
    expect(threads.map(({ threadId }) => threadId)).toEqual([-1]) // that of a stopped thread
  } finally {
    unsubscribe('worker_threads', note)
  }
})

test('a stop aborts the load in flight, and rejects further ones', async () => {
  const path = await writeLarge(200_000)
  const started = Promise.withResolvers<unknown>()
  subscribe('worker_threads', started.resolve)
  try {
    const loading = loader.load([path])
    const rejected = expect(loading).rejects.toThrow('exited before it finished')
    await started.promise
    await loader.stop()
    await rejected
  } finally {
    unsubscribe('worker_threads', started.resolve)
  }
  await expect(loader.load([path])).rejects.toThrow('stopping')
})

test('a step is short, and faults are bounded', () => {
  const content = Buffer.from('com\n'.repeat(FAULTS_MAX + 500) + 'evil.example')
  const building = buildBlockedTable([{ path: 'f', content }], { bytes: content.length, seed: 1 })
  expect(building.next().done).toBe(false)
  expect(building.next().done).toBe(false)
  let step = building.next()
  while (step.done !== true) step = building.next()
  expect(step.value.entries).toBe(1)
  expect(step.value.faults).toHaveLength(FAULTS_MAX)
})

test('the thread does not run as a program of its own', async () => {
  await expect(import('./blocked-thread.ts')).rejects.toThrow('not started by')
})
