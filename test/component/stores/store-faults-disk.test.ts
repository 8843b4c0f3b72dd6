// The standalone process on a disk that is full at its start or while it runs, or that hangs, in an
// unusable folder, and with a stopped writer thread. The disk is a tmpfs in the mount namespace of
// the process.
import { existsSync } from 'node:fs'
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from '@jest/globals'
import { openClient } from '../../kit/http/client.ts'
import { type RawResponse, headerOf, jsonOf } from '../../kit/http/raw-http.ts'
import { runCurtail } from '../../kit/processes/run-curtail.ts'
import { startStandalone } from '../../kit/processes/standalone.ts'
import { withinDeadline, waitFor } from '../../kit/wait-for.ts'
import { watchPauses } from '../../kit/watch-pauses.ts'

const TEST_MS_MAX = 180_000
const REJECTION_MS_MAX = 1000
const STOP_MS_MAX = 8000
/** A transaction is aborted after this time: GROUP_MS_MAX of stores/sqlite/writer.ts. */
const GROUP_MS_MAX = 2500
const MIB = 1 << 20
const body = { long_url: 'https://example.com/' }
const cleanUps: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'curtail-disk-'))
  cleanUps.push(() => rm(path, { recursive: true }))
  return path
}

/** Runs a command with a tmpfs at `path`, in a mount namespace of its own. */
function onSmallDisk(path: string, mib: number): string[] {
  const script = `mount -t tmpfs -o size=${mib}m tmpfs "$0" && exec "$@"`
  return ['unshare', '--map-root-user', '--mount', 'sh', '-c', script, path]
}

/** Fills the disk with a file. */
async function fill(path: string): Promise<void> {
  for (let bytes = MIB; bytes >= 1; bytes = Math.floor(bytes / 2)) {
    const more = () => writeFile(path, Buffer.alloc(bytes), { flag: 'a' }).then(() => true)
    const isFull = (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOSPC') throw error
      return false
    }
    while (await more().catch(isFull));
  }
}

async function started(options: { disk?: number; env?: Record<string, string> }) {
  const dataDir = await folder()
  const wrapper = options.disk === undefined ? [] : onSmallDisk(dataDir, options.disk)
  const service = await startStandalone({ dataDir, wrapper, env: options.env ?? {} })
  cleanUps.push(() => service.stop())
  const client = await openClient(service.port)
  cleanUps.push(() => {
    client.close()
  })
  const linesOf = (msg: string) => service.log.filter((line) => line['msg'] === msg)
  const storeState = async () => {
    const response = await fetch(`${service.adminUrl}/readyz`)
    const state = (await response.json()) as { dependencies: Record<string, string> }
    return [response.status, state.dependencies['store']]
  }
  return { service, client, linesOf, storeState }
}

const NOTHING_STORED = 'The store is unavailable, and the link was not stored: retry'
const NOT_CONFIRMED =
  'The store did not confirm the link: ' +
  'retry with the same Idempotency-Key, which creates no second link'

function expectRejection(response: RawResponse, detail = NOTHING_STORED): void {
  const problem = jsonOf(response)
  const name = String(problem['type']).split('/').at(-1)
  expect([response.status, name]).toEqual([503, 'store-unavailable'])
  expect(problem['detail']).toBe(detail)
  expect(Number(headerOf(response, 'Retry-After'))).toBeGreaterThanOrEqual(1)
}

test(
  'standalone reports a full disk and its recovery to clients, in the log and at /readyz',
  async () => {
    const { service, client, linesOf, storeState } = await started({ disk: 6 })
    const created = await client.create({ ...body, custom_alias: 'found' })
    expect([created.status, await storeState()]).toEqual([201, [200, 'up']])
    expect((await client.create(body)).status).toBe(201)
    const ballast = join(`/proc/${service.pid}/root`, service.dataDir, 'ballast')
    await fill(ballast)
    for (let i = 0; i < 5; i++) {
      const pauses = watchPauses()
      const startedMs = performance.now()
      const byKey = { 'Idempotency-Key': `full-${i}` }
      const alias = { ...body, custom_alias: `full-${i}` }
      expectRejection(await client.create(body))
      expectRejection(await client.create(alias))
      expectRejection(await client.create(body, byKey), NOT_CONFIRMED)
      const tookMs = performance.now() - startedMs
      pauses.stop()
      expect(tookMs).toBeLessThan(REJECTION_MS_MAX + pauses.longestMs())
    }
    expect(await storeState()).toEqual([200, 'down'])
    expect((await client.resolve('found')).status).toBe(302)
    await waitFor('the line of the fault', () => linesOf('store unavailable').length > 0)
    expect(linesOf('store unavailable')).toMatchObject([
      { level: 'error', side: 'write', reason: 'database or disk is full' },
    ])
    await rm(ballast)
    // Without a create, a probe detects the recovery.
    await waitFor('the store to be up', async () => (await storeState())[1] === 'up')
    await waitFor('the line of the recovery', () => linesOf('store available').length > 0)
    expect(linesOf('store available')).toHaveLength(1)
    expect((await client.create(body)).status).toBe(201)
    const retried = await client.create(body, { 'Idempotency-Key': 'full-0' })
    expect(retried.status).toBe(201)
  },
  TEST_MS_MAX,
)

test.each([
  ['', 8],
  [', while it fills the pool', 110],
])('standalone exits and prints one line if the disk is full at its start%s', async (_, kib) => {
  const dataDir = await folder()
  const wrapper = onSmallDisk(dataDir, 1)
  const preload = join(await folder(), 'fill.mjs')
  // In the namespace of the process: leaves `kib` of the disk.
  await writeFile(
    preload,
    `import { writeFileSync } from 'node:fs'
     import { isMainThread } from 'node:worker_threads'
     const ballast = process.env.DATA_DIR + '/b'
     if (isMainThread) writeFileSync(ballast, Buffer.alloc(${MIB} - ${kib} * 1024))`,
  )
  const starting = startStandalone({
    dataDir,
    wrapper,
    env: { NODE_OPTIONS: `--import ${preload}` },
  })
  const failure = await starting.then(
    () => new Error('it started'),
    (error: unknown) => error as Error,
  )
  const line = `curtail: DATA_DIR ${dataDir} cannot be used: [^\\n]*`
  expect(failure.message).toMatch(new RegExp(`exited \\(1\\) before it was ready: ${line}\\n$`))
})

test('standalone exits immediately if it cannot create its folder', async () => {
  const startedMs = performance.now()
  const env = { PORT: '0', ADMIN_PORT: '0', DATA_DIR: '/proc/foo/data' }
  const run = await runCurtail(['standalone'], env)
  const error = /^curtail: DATA_DIR \/proc\/foo\/data cannot be used: ENOENT[^\n]*\n$/
  expect(run).toEqual({ exitCode: 2, stdout: '', stderr: expect.stringMatching(error) })
  expect(performance.now() - startedMs).toBeLessThan(10_000)
})

test('standalone creates the parent folders of DATA_DIR', async () => {
  const dataDir = join(await folder(), 'a', 'b')
  const service = await startStandalone({ dataDir })
  cleanUps.push(() => service.stop())
  expect((await stat(join(dataDir, 'curtail.db'))).isFile()).toBe(true)
})

/** Runs `code` in the writer thread from `start` to `stop`, which it returns. */
async function inWriterThread(code: (isMarked: string) => string) {
  const box = await folder()
  const preload = join(box, 'fault.mjs')
  const [mark, running] = [join(box, 'mark'), join(box, 'running')]
  await writeFile(
    preload,
    `import { existsSync, writeFileSync } from 'node:fs'
     import { isMainThread } from 'node:worker_threads'
     const isMarked = () => existsSync(${JSON.stringify(mark)})
     const poll = () => {
       if (!isMarked()) return
       writeFileSync(${JSON.stringify(running)}, '')
       ${code('isMarked()')}
     }
     if (!isMainThread) setInterval(poll, 20).unref()`,
  )
  const start = async () => {
    await writeFile(mark, '')
    await waitFor('the thread', () => existsSync(running))
  }
  return { start, stop: () => rm(mark), env: { NODE_OPTIONS: `--import ${preload}` } }
}

test.each([
  ['throws', "throw new Error('broken by the test')", 'broken by the test'],
  ['exits', 'process.exit(0)', 'the writer thread has stopped'],
])(
  'a writer thread that %s terminates the process, so that it is restarted',
  async (_, code, message) => {
    const { start, env } = await inWriterThread(() => code)
    const { service, client, linesOf } = await started({ env })
    expect((await client.create(body)).status).toBe(201)
    await start()
    expect(await withinDeadline('the exit', service.exited)).toBe(1)
    const exiting = 'the database cannot be written: exiting for a restart'
    expect(linesOf(exiting)).toMatchObject([{ level: 'fatal', err: { message } }])
  },
  TEST_MS_MAX,
)

/** Blocks the thread, as a disk that hangs does. */
const hang = (isMarked: string) =>
  `while (${isMarked}) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)`

test(
  'standalone rejects creates with 503 but redirects while the disk hangs, and then recovers',
  async () => {
    const { start, stop, env } = await inWriterThread(hang)
    const { client, linesOf, storeState } = await started({ env })
    expect((await client.create({ ...body, custom_alias: 'found' })).status).toBe(201)
    expect((await client.create(body)).status).toBe(201) // the process has a block of codes
    const byKey = { 'Idempotency-Key': 'hung' }
    const aliased = { ...body, custom_alias: 'hung' }
    await start()
    const startedMs = performance.now()
    const first = client.create(aliased, byKey)
    expect((await client.resolve('found')).status).toBe(302)
    expect((await client.resolve('none')).status).toBe(404)
    expectRejection(await first, NOT_CONFIRMED)
    expect(performance.now() - startedMs).toBeLessThan(5 * GROUP_MS_MAX)
    const nextMs = performance.now()
    expectRejection(await client.create(body)) // immediately: the hung group blocks the thread
    expect(performance.now() - nextMs).toBeLessThan(REJECTION_MS_MAX)
    expect((await client.resolve('found')).status).toBe(302)
    expect(await storeState()).toEqual([200, 'down'])
    expect(linesOf('store unavailable')).toMatchObject([
      { side: 'write', reason: 'SQLite did not respond within the deadline' },
    ])
    await stop()
    await waitFor('the store to be up', async () => (await storeState())[1] === 'up')
    for (let i = 0; i < 2; i++) {
      const created = await client.create(aliased, byKey)
      expect([created.status, jsonOf(created)['short_url']]).toEqual([
        201,
        expect.stringMatching(/\/hung$/),
      ])
    }
  },
  TEST_MS_MAX,
)

test(
  'standalone stops within 8 s while the disk hangs',
  async () => {
    const { start, env } = await inWriterThread(hang)
    const { service, client } = await started({ env })
    await start()
    const created = Promise.allSettled([client.create(body)])
    process.kill(service.pid, 'SIGTERM')
    expect(typeof (await withinDeadline('the exit', service.exited, STOP_MS_MAX))).toBe('number')
    await created
  },
  TEST_MS_MAX,
)
