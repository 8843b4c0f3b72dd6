// Stored versions are used until the server sends a valid one: first the copy, then the fallback.
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { never, openRulesOfXds, versionOf } from '../../../test/kit/ratelimit/open-xds-rules.ts'
import { waitFor } from '../../../test/kit/wait-for.ts'
import { readDiscoveryResponse } from '../../protobuf/discovery.ts'

const good = (domain: string) => ({ domain })
const bad = { domain: 'shop', descriptors: [{ key: '' }] }

let folder: string
let copy: string
let fallback: string
let env: Record<string, string>

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-xds-stored-'))
  copy = join(folder, 'copy')
  fallback = join(folder, 'fallback')
  const forced = { FORCE_START_WITHOUT_INITIAL_CONFIG: 'true' }
  env = { ...forced, RULES_COPY: copy, XDS_FALLBACK_VERSION: fallback }
})
afterEach(async () => {
  jest.useRealTimers()
  await rm(folder, { recursive: true })
})

test('the copy precedes the fallback version', async () => {
  await writeFile(copy, versionOf('v1', good('of copy')).message)
  await writeFile(fallback, gzipSync(versionOf('v2', good('of fallback')).message))
  const { domains, logged, stop } = await openRulesOfXds(env)
  expect(domains()).toEqual(['of copy'])
  expect(logged).toMatchObject([{ source: 'copy', version: 'v1' }])
  await stop()
})

test('a copy with faults is reported, and the fallback version is used', async () => {
  await writeFile(copy, versionOf('v1', bad).message)
  await writeFile(fallback, gzipSync(versionOf('v2', good('of fallback')).message))
  const { domains, logged, state, stop } = await openRulesOfXds(env)
  expect(domains()).toEqual(['of fallback'])
  expect(logged).toMatchObject([
    { level: 'warn', source: 'copy', message: 'the copy of the rules has faults' },
    { level: 'info', source: 'fallback version', version: 'v2' },
  ])
  expect(state()).toMatchObject({ isLoaded: true, domains: 1 })
  await stop()
})

test('each version that the server sends is copied, and replaces a stored one', async () => {
  await writeFile(fallback, gzipSync(versionOf('v1', good('of fallback')).message))
  const rules = await openRulesOfXds(env)
  await rules.apply('v2', good('sent'))
  await rules.apply('v3', bad)
  await rules.stop()
  expect(rules.domains()).toEqual(['sent'])
  expect(readDiscoveryResponse(await readFile(copy)).version).toBe('v2')
  const { domains, stop } = await openRulesOfXds(env)
  expect(domains()).toEqual(['sent'])
  await stop()
})

test('a stored version is not used once the server has sent one', async () => {
  await writeFile(fallback, gzipSync(versionOf('v1', good('of fallback')).message))
  const { domains, logged, stop } = await openRulesOfXds(
    { XDS_FALLBACK_VERSION: fallback },
    (on) => {
      void on.apply(versionOf('v2', good('sent')), never).then(() => {
        on.onFailure('warn')
      })
    },
  )
  expect(domains()).toEqual(['sent'])
  await new Promise(setImmediate)
  expect(logged.filter(({ source }) => source !== undefined)).toEqual([])
  await stop()
})

test('after an interval without a failed attempt, a stored version is a warning', async () => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'performance', 'setImmediate', 'setTimeout'] })
  await writeFile(fallback, gzipSync(versionOf('v0', bad).message))
  const { logged, stop } = await openRulesOfXds({ XDS_FALLBACK_VERSION: fallback }, (on, lines) => {
    const faultsOf = () => lines.filter(({ version }) => version === 'v0').length
    void (async () => {
      on.onFailure('info')
      await waitFor('the first attempt', () => faultsOf() === 1)
      jest.advanceTimersByTime(15_000)
      await waitFor('the second attempt', () => faultsOf() === 2)
      await writeFile(`${fallback}.new`, gzipSync(versionOf('v1', good('new')).message))
      await rename(`${fallback}.new`, fallback)
      jest.advanceTimersByTime(15_000)
    })()
  })
  expect(logged.filter(({ version }) => version === 'v1')).toMatchObject([{ level: 'warn' }])
  await stop()
})

test('SIGHUP opens a new stream until the rules are closed', async () => {
  const { logged, reconnects, stop } = await openRulesOfXds()
  process.emit('SIGHUP')
  expect(reconnects()).toBe(1)
  expect(logged).toMatchObject([{ level: 'info', message: 'reconnecting to the xDS server' }])
  await stop()
  process.emit('SIGHUP')
  expect(reconnects()).toBe(1)
})

test('a version without resources deactivates all rules, with a warning', async () => {
  const { callbacks, domains, logged, stop } = await openRulesOfXds()
  await callbacks()?.apply(versionOf('v1', good('shop')), never)
  await callbacks()?.apply(versionOf('v2'), never)
  expect(domains()).toEqual([])
  expect(logged.slice(-2)).toMatchObject([
    { level: 'info', version: 'v2', message: 'rules loaded' },
    { level: 'warn', message: 'the version has no resources: no rules are active' },
  ])
  await stop()
})

test('a version that arrives while the process stops is rejected, and not reported', async () => {
  const { apply, logged, state, stop } = await openRulesOfXds()
  await stop()
  const rejection = await apply('v1', good('shop'))
  expect(rejection).toEqual({ message: 'the process is stopping', isRetryable: false })
  expect(state().isLoaded).toBe(false)
  expect(logged).toEqual([])
})
