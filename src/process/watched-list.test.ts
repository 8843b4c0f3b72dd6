// A list in files: the first load, changes as a mounted Secret makes them, and failures.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { pino } from 'pino'
import { mountSecret } from '../../test/kit/mounted-secret.ts'
import { waitFor } from '../../test/kit/wait-for.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { type ListFile, readListFiles, type WatchedList, watchList } from './watched-list.ts'

const MIB = 1024 * 1024

let folder: string
let lines: string[]
let metrics: ReturnType<typeof createMetrics>
let list: WatchedList<readonly string[]> | undefined

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-list-'))
  lines = []
  metrics = createMetrics()
})
afterEach(async () => {
  await list?.stop()
  await rm(folder, { recursive: true })
})

/** A list of words: those with a digit are faulty, and a file with `!` cannot be parsed. */
const parseWords = (files: readonly ListFile[]) => {
  const words = files.flatMap(({ content }) => content.split('\n').filter((word) => word !== ''))
  if (words.some((word) => word.includes('!'))) throw new Error('not a list')
  const value = words.filter((word) => !/\d/.test(word))
  const faults = words.filter((word) => /\d/.test(word)).map((word) => `${word} has a digit`)
  return { value, entries: value.length, faults }
}

async function start(
  path: string | undefined,
  onRead: () => Promise<void> = () => Promise.resolve(),
) {
  list = await watchList<readonly string[]>({
    name: 'words',
    path,
    suffix: '.txt',
    empty: [],
    load: async (paths) => {
      const files = await readListFiles(paths)
      await onRead()
      return parseWords(files)
    },
    log: pino({}, { write: (line) => void lines.push(line) }),
    metrics,
  })
  return list
}

const expectWords = (words: readonly string[]) =>
  waitFor('the list', () => JSON.stringify(list?.current()) === JSON.stringify(words))
const valueOf = async (gauge: 'listEntries' | 'listFaults') =>
  (await metrics[gauge].get()).values.map(({ labels, value }) => [labels.list, value])

test('without a path the list is empty', async () => {
  const { current } = await start(undefined)
  expect(current()).toEqual([])
  expect(await valueOf('listEntries')).toEqual([['words', 0]])
})

test('a file that does not exist is an empty list, and is loaded once it does', async () => {
  const path = join(folder, 'words.txt')
  const { current } = await start(path)
  expect(current()).toEqual([])
  expect(lines.join('')).toContain('the path of a list does not exist')
  await writeFile(path, 'one\ntwo\n')
  await expectWords(['one', 'two'])
})

test('a mounted folder is reloaded when its files are swapped', async () => {
  const mounted = await mountSecret({ 'a.txt': 'one', 'b.txt': 'two' })
  try {
    const { current } = await start(mounted.pathOf('.'))
    expect(current()).toEqual(['one', 'two'])
    await mounted.swap({ 'a.txt': 'one', 'b.txt': 'three\nfour' })
    await expectWords(['one', 'three', 'four'])
    expect(await valueOf('listEntries')).toEqual([['words', 3]])
  } finally {
    await mounted.remove()
  }
})

test('faulty lines are ignored, counted, and at most ten of them logged', async () => {
  const faulty = Array.from({ length: 12 }, (_, at) => `word${at}`)
  await writeFile(join(folder, 'words.txt'), ['one', ...faulty].join('\n'))
  const { current } = await start(folder)
  expect(current()).toEqual(['one'])
  expect(await valueOf('listFaults')).toEqual([['words', 12]])
  const logged = lines.find((line) => line.includes('lines of a list ignored')) ?? ''
  expect(logged).toContain('"faults":12')
  expect(logged).toContain('word9 has a digit')
  expect(logged).not.toContain('word10')
})

test('a list keeps its previous value while it cannot be loaded', async () => {
  const path = join(folder, 'words.txt')
  await writeFile(path, 'one')
  await start(path)
  await writeFile(path, '!')
  await waitFor('the log line', () => lines.some((line) => line.includes('list not loaded')))
  expect(list?.current()).toEqual(['one'])
  expect(await valueOf('listFaults')).toEqual([['words', 1]])
  await writeFile(path, 'two')
  await expectWords(['two'])
  expect(await valueOf('listFaults')).toEqual([['words', 0]])
})

test('a process starts although its list cannot be read', async () => {
  await writeFile(join(folder, 'words.txt'), '!')
  const { current } = await start(folder)
  expect(current()).toEqual([])
  expect(await valueOf('listFaults')).toEqual([['words', 1]])
})

test('more than 64 files, or a file of more than 8 MiB, are not loaded', async () => {
  const many = join(folder, 'many')
  await mkdir(many)
  for (let at = 0; at < 65; at++) await writeFile(join(many, `${at}.txt`), 'one')
  await start(many)
  expect(lines.join('')).toContain('has 65 files: at most 64 are allowed')
  const large = join(folder, 'large')
  await writeFile(large, 'x'.repeat(8 * MIB + 1))
  await expect(readListFiles([large])).rejects.toThrow('at most 8388608 are allowed')
  await writeFile(large, 'x'.repeat(8 * MIB))
  const five = Array.from({ length: 5 }, () => large)
  await expect(readListFiles(five)).rejects.toThrow('more than 33554432 bytes')
})

test('other files and folders of a folder are ignored', async () => {
  await writeFile(join(folder, 'words.txt'), 'one')
  await writeFile(join(folder, 'words.txt~'), 'two')
  await writeFile(join(folder, '.words.txt'), 'three')
  await mkdir(join(folder, 'lost+found'))
  const { current } = await start(folder)
  expect(current()).toEqual(['one'])
})

test('a list whose files are deleted stays in use, and an empty file empties it', async () => {
  const path = join(folder, 'words.txt')
  await writeFile(path, 'one')
  await start(folder)
  await rm(path)
  await waitFor('the log line', () => lines.some((line) => line.includes('leave an empty file')))
  expect(list?.current()).toEqual(['one'])
  expect(await valueOf('listFaults')).toEqual([['words', 1]])
  await writeFile(path, '')
  await expectWords([])
  expect(await valueOf('listFaults')).toEqual([['words', 0]])
})

test('a list stays in use if one of its files is deleted, or if no line is valid', async () => {
  await writeFile(join(folder, 'a.txt'), 'one')
  await writeFile(join(folder, 'b.txt'), 'two')
  await start(folder)
  await rm(join(folder, 'a.txt'))
  await waitFor('the log line', () => lines.some((line) => line.includes('a.txt no longer exists')))
  expect(list?.current()).toEqual(['one', 'two'])
  await writeFile(join(folder, 'a.txt'), '')
  await expectWords(['two'])
  await writeFile(join(folder, 'b.txt'), '<html 1>')
  await waitFor('the log line', () => lines.some((line) => line.includes('no line is valid')))
  expect(list?.current()).toEqual(['two'])
  expect(await valueOf('listFaults')).toEqual([['words', 1]])
})

test('files that change during the load are loaded another time', async () => {
  const path = join(folder, 'words.txt')
  await writeFile(path, 'one')
  let loads = 0
  await start(folder, async () => {
    if (loads++ === 0) await writeFile(path, 'one\ntwo\nthree')
  })
  expect(list?.current()).toEqual([])
  expect(lines.join('')).toContain('the files were changed during the load')
  await expectWords(['one', 'two', 'three'])
})
