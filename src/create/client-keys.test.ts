// The keys of the clients of a process: the files that it reads, and the check of these files.
import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { waitFor } from '../../test/kit/wait-for.ts'
import type { Stop } from '../process/stop.ts'
import { createLog } from '../telemetry/log.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { apiKeysCheck, noClientKeys, openClientKeys } from './client-keys.ts'

const NOW_MS = Date.UTC(2027, 0, 1)
const keyOf = (name: string) => `curtail_${name.padEnd(43, '-')}`
const lineOf = (name: string, change: Readonly<Record<string, unknown>> = {}) => {
  const hash = `sha256:${createHash('sha256').update(keyOf(name)).digest('hex')}`
  return `${JSON.stringify({ name, creator_id: '42', hash, ...change })}\n`
}

let folder: string
let stops: Stop[]
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-keys-'))
  stops = []
})
afterEach(async () => {
  for (const stop of stops) await stop()
  await rm(folder, { recursive: true })
})

/** The keys of these files, and the metrics of their list. */
async function open(path: string | undefined, isRequired = false) {
  const clock = { nowMs: NOW_MS }
  const metrics = createMetrics()
  const log = createLog({ role: 'test', level: 'silent' })
  const keys = await openClientKeys(
    { API_KEYS: path, API_KEY_REQUIRED: isRequired },
    { log, metrics, onStop: (stop) => stops.push(stop) },
    () => clock.nowMs,
  )
  return { keys, clock, metrics }
}

test('without files there are no keys, and none is required', async () => {
  const { keys } = await open(undefined)
  for (const each of [keys, noClientKeys]) {
    expect([each.find(keyOf('shop')), each.isRequired]).toEqual([undefined, false])
  }
})

test('keys of all files are found until they expire', async () => {
  const expires = { expires_at: new Date(NOW_MS + 1000).toISOString() }
  await writeFile(join(folder, 'a.ndjson'), lineOf('shop') + lineOf('guest', expires))
  await writeFile(join(folder, 'b.ndjson'), lineOf('blog', { creator_id: '7' }))
  await writeFile(join(folder, 'c.txt'), lineOf('other'))
  const { keys, clock, metrics } = await open(folder, true)
  expect(keys.isRequired).toBe(true)
  expect(keys.find(keyOf('shop'))).toMatchObject({ name: 'shop', creatorId: 42n })
  expect(keys.find(keyOf('blog'))).toMatchObject({ name: 'blog', creatorId: 7n })
  expect([keys.find(keyOf('other')), keys.find(undefined)]).toEqual([undefined, undefined])
  clock.nowMs = NOW_MS + 999
  expect(keys.find(keyOf('guest'))).toBeDefined()
  clock.nowMs = NOW_MS + 1000
  expect(keys.find(keyOf('guest'))).toBeUndefined()
  const { values } = await metrics.listEntries.get()
  expect(values).toEqual([{ labels: { list: 'api-keys' }, value: 3 }])
})

test('changed files are reloaded until the process stops', async () => {
  const path = join(folder, 'keys.ndjson')
  await writeFile(path, lineOf('shop'))
  const { keys: stopped } = await open(path)
  expect(stops).toHaveLength(1)
  for (const stop of stops.splice(0)) await stop()
  const { keys } = await open(path)
  await writeFile(path, lineOf('blog'))
  await waitFor('the new key', () => keys.find(keyOf('blog')) !== undefined)
  expect(keys.find(keyOf('shop'))).toBeUndefined()
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(stopped.find(keyOf('blog'))).toBeUndefined()
})

test('files of many lines are read to their end', async () => {
  const path = join(folder, 'keys.ndjson')
  await writeFile(path, `${'# comment\n'.repeat(2000)}${lineOf('shop')}x\n`)
  const { keys, metrics } = await open(path)
  expect(keys.find(keyOf('shop'))).toMatchObject({ name: 'shop' })
  const { values } = await metrics.listFaults.get()
  expect(values).toEqual([{ labels: { list: 'api-keys' }, value: 1 }])
})

describe('the check of the files', () => {
  const problemsOf = (path: string | undefined) => apiKeysCheck.findProblems({ API_KEYS: path })

  test('returns no problems for valid files, other files, an absent path or none', async () => {
    expect(apiKeysCheck.names).toEqual(['API_KEYS'])
    await writeFile(join(folder, 'keys.ndjson'), lineOf('shop'))
    await writeFile(join(folder, 'notes.md'), 'not a key\n')
    for (const path of [folder, join(folder, 'absent'), undefined]) {
      expect(await problemsOf(path)).toEqual([])
    }
  })

  test('returns each faulty line', async () => {
    const path = join(folder, 'keys.ndjson')
    await writeFile(path, `x\n${lineOf('shop')}${lineOf('shop')}`)
    expect(await problemsOf(folder)).toEqual([
      expect.stringContaining(`API_KEYS: ${path}:1: `),
      expect.stringContaining(`API_KEYS: ${path}:3: name must be unique`),
    ])
  })
})
