// How many files of src a request executes, measured by V8 in the real roles: to follow a request
// through the code, an engineer must read all of them.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test } from '@jest/globals'
import { startRedis } from '../../dependencies/redis.ts'
import { createLinkRequest } from '../../kit/http/client.ts'
import { openConnection } from '../../kit/http/raw-http.ts'
import { startExactLimiter } from '../../kit/ratelimit/limiter.ts'
import type { RoleProcess } from '../../kit/processes/role-process.ts'
import { startStandalone } from '../../kit/processes/standalone.ts'
import { withinDeadline } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 400_000 // Redis may have to be installed
const REQUESTS = 100
const SOURCES = new URL('../../../src/', import.meta.url).href

/** A module that, on SIGUSR2, prints and resets how often the functions of each file ran. */
const coverage = `data:text/javascript,${encodeURIComponent(`
import { Session } from 'node:inspector'
const session = new Session()
session.connect()
session.post('Profiler.enable')
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
process.on('SIGUSR2', () => {
  session.post('Profiler.takePreciseCoverage', (error, { result }) => {
    const runs = result.map(({ url, functions }) => [
      url,
      Math.max(...functions.map(({ ranges }) => ranges[0].count)),
    ])
    process.stderr.write('ran ' + JSON.stringify(runs) + String.fromCharCode(10))
  })
})`)}`
const NODE_OPTIONS = `--import=${coverage}`
/** Functions of the compile cache are not counted exactly. */
const NODE_DISABLE_COMPILE_CACHE = '1'

const closing: (() => Promise<unknown> | undefined)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
}, TEST_MS_MAX)

/** How often a function of each file ran since the last call. */
function takeRuns({ child }: RoleProcess): Promise<(readonly [url: string, runs: number])[]> {
  let output = ''
  const runs = new Promise<(readonly [string, number])[]>((resolve) => {
    const read = (chunk: Buffer) => {
      output += chunk.toString()
      const [, json] = /^ran (.*)\n/m.exec(output) ?? []
      if (json === undefined) return
      child.stderr?.off('data', read)
      resolve(JSON.parse(json) as [string, number][])
    }
    child.stderr?.on('data', read)
  })
  child.kill('SIGUSR2')
  return withinDeadline('the coverage', runs)
}

/** The files that each of many requests executes, after as many to warm up. */
async function filesOf(role: RoleProcess, send: () => Promise<void>): Promise<string[]> {
  for (let at = 0; at < REQUESTS; at++) await send()
  await takeRuns(role)
  const startedMs = performance.now()
  for (let at = 0; at < REQUESTS; at++) await send()
  const tookMs = performance.now() - startedMs
  const runs = await takeRuns(role)
  // On a busy machine, tasks in the background run as often.
  await sleep(tookMs)
  const idle = new Map(await takeRuns(role))
  // The last request may not be complete.
  return runs
    .filter(([url, count]) => url.startsWith(SOURCES) && count >= REQUESTS - 1)
    .filter(([url]) => (idle.get(url) ?? 0) < REQUESTS / 2)
    .map(([url]) => url.slice(SOURCES.length))
}

test(
  'a redirect from memory, without limits as in redirect pods, executes at most 15 files',
  async () => {
    const service = await startStandalone({ env: { NODE_OPTIONS, NODE_DISABLE_COMPILE_CACHE } })
    closing.push(() => service.stop())
    const connection = await openConnection(service.port)
    const body = { long_url: 'https://example.com/', custom_alias: 'files' }
    expect((await connection.exchange(createLinkRequest(body))).status).toBe(201)
    const files = await filesOf(service, async () => {
      expect((await connection.exchange({ path: '/files' })).status).toBe(302)
    })
    connection.close()
    expect(files).toContain('http/redirect/get-code.ts')
    expect(files.length).toBeLessThanOrEqual(15)
  },
  TEST_MS_MAX,
)

test(
  'a rate-limit call executes at most 20 files, besides those of gRPC and Redis',
  async () => {
    const redis = await startRedis()
    closing.push(() => redis.close())
    const rules =
      'domain: shop\ndescriptors: [{key: a, rate_limit: {unit: hour, requests_per_unit: 100000}}]'
    const env = { NODE_OPTIONS, NODE_DISABLE_COMPILE_CACHE }
    const limiter = await startExactLimiter({ rules, redisPort: redis.port, env })
    closing.push(() => limiter.stop())
    const files = await filesOf(limiter, async () => {
      expect((await limiter.decide({ a: 'b' })).overallCode).toBe('OK')
    })
    const others = files.filter((file) => !/^(grpc|protobuf|stores\/redis)\//.test(file))
    expect(others).toContain('limiter/decide/decide-limits.ts')
    expect(others.length).toBeLessThanOrEqual(20)
  },
  TEST_MS_MAX,
)
