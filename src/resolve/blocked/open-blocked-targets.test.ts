// The checks of a process: they use the current files, even for targets that were checked before.
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { waitFor } from '../../../test/kit/wait-for.ts'
import type { Target } from '../../links/decide-redirect.ts'
import type { Stop } from '../../process/stop.ts'
import { createLog } from '../../telemetry/log.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { FILES_BYTES_MAX } from './load-blocked-targets.ts'
import { blockedTargetsFiles, openBlockedTargets } from './open-blocked-targets.ts'

let folder: string
let stops: Stop[]
let metrics: ReturnType<typeof createMetrics>
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-blocked-'))
  stops = []
  metrics = createMetrics()
})
afterEach(async () => {
  for (const stop of stops) await stop()
  await rm(folder, { recursive: true })
})

const open = (path: string | undefined) =>
  openBlockedTargets(path, {
    log: createLog({ role: 'test', level: 'silent' }),
    metrics,
    onStop: (stop) => stops.push(stop),
  })
const blockedCounts = async () =>
  (await metrics.blocked.get()).values.map(({ labels, value }) => [String(labels.route), value])

test('without a path, nothing is blocked', async () => {
  const checks = await open(undefined)
  const target: Target = { longUrl: 'https://evil.example/', expiresAtMs: null }
  expect(checks.linkCreationCheck()(target.longUrl)).toBe(false)
  expect(checks.redirectCheck()(target)).toBe(false)
  expect(target.allowedBy).toBeUndefined()
})

test('each check counts the blocked targets of its route', async () => {
  await writeFile(join(folder, 'list.txt'), 'evil.example\n')
  const checks = await open(folder)
  expect(checks.linkCreationCheck()('https://evil.example/')).toBe(true)
  expect(checks.linkCreationCheck()('https://example.com/')).toBe(false)
  const isBlocked = checks.redirectCheck()
  const target = { longUrl: 'https://evil.example/', expiresAtMs: null }
  expect([isBlocked(target), isBlocked(target)]).toEqual([true, true])
  expect(await blockedCounts()).toEqual([
    ['create', 1],
    ['redirect', 2],
  ])
})

test('an allowed target is compared once with each version of the list', async () => {
  const path = join(folder, 'list.txt')
  await writeFile(path, 'evil.example\n')
  const isBlocked = (await open(path)).redirectCheck()
  const target: Target & { longUrl: string } = {
    longUrl: 'https://shop.example/',
    expiresAtMs: null,
  }
  expect([isBlocked(target), target.allowedBy]).toEqual([false, 1])
  target.longUrl = 'https://evil.example/' // links never do this: it shows what is compared
  expect(isBlocked(target)).toBe(false)
  target.longUrl = 'https://shop.example/'
  await writeFile(path, 'evil.example\nshop.example\n')
  await waitFor('the second list', () => isBlocked(target))
  await writeFile(path, '# nothing\n')
  await waitFor('the empty list', () => !isBlocked(target))
})

test('the check for operators is not counted, and returns undefined without entries', async () => {
  const path = join(folder, 'list.txt')
  await writeFile(path, 'evil.example\n')
  const checks = await open(folder)
  expect(checks.has('https://www.evil.example/')).toBe(true)
  expect(checks.has('https://example.com/')).toBe(false)
  expect((await blockedCounts()).filter(([, count]) => count !== 0)).toEqual([])
  await writeFile(path, '# nothing\n')
  expect((await open(path)).has('https://evil.example/')).toBeUndefined()
  expect((await open(undefined)).has('https://evil.example/')).toBeUndefined()
})

test('a stop ends the reloads', async () => {
  const path = join(folder, 'list.txt')
  await writeFile(path, 'evil.example\n')
  const stopped = await open(path)
  expect(stops).toHaveLength(1)
  for (const stop of stops.splice(0)) await stop()
  const checks = await open(path)
  await writeFile(path, 'evil.example\nshop.example\n')
  await waitFor('the second list', () => checks.has('https://shop.example/') === true)
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(stopped.has('https://shop.example/')).toBe(false)
})

describe('the check of the files', () => {
  const problemsOf = (path: string | undefined) =>
    blockedTargetsFiles.findProblems({ BLOCKED_TARGETS: path })

  test('returns no problems for valid files, other files, an absent path or none', async () => {
    expect(blockedTargetsFiles.names).toEqual(['BLOCKED_TARGETS'])
    await writeFile(join(folder, 'list.txt'), 'evil.example\n')
    await writeFile(join(folder, 'notes.md'), 'com\n')
    for (const path of [folder, join(folder, 'absent'), undefined]) {
      expect(await problemsOf(path)).toEqual([])
    }
  })

  test('returns each faulty line of the files', async () => {
    const path = join(folder, 'list.txt')
    await writeFile(path, 'com\nevil.example\n*.evil.example\n')
    expect(await problemsOf(folder)).toEqual([
      expect.stringContaining(`BLOCKED_TARGETS: ${path}:1: `),
      expect.stringContaining(`BLOCKED_TARGETS: ${path}:3: `),
    ])
  })

  test('returns that a file is too large', async () => {
    const path = join(folder, 'list.txt')
    await writeFile(path, '')
    await truncate(path, FILES_BYTES_MAX + 1)
    expect(await problemsOf(path)).toEqual([
      expect.stringContaining(`BLOCKED_TARGETS must name readable files: current value is ${path}`),
    ])
  })
})
