// The standalone process on a disk that is full while it runs or at its start, with an unusable
// folder, with a dead writer thread, and with a disk that hangs. The disk is a tmpfs in the mount
// namespace of the process.
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

const TEST_MS_MAX = 60_000
const REFUSAL_MS_MAX = 1000
const STOP_MS_MAX = 8000
/** After so long a transaction is aborted: GROUP_MS_MAX of stores/sqlite/writer.ts. */
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

/** Runs a command with a tmpfs at `path`, in a namespace of its own: it ends with the process. */
function onSmallDisk(path: string, mib: number): string[] {
  const script = `mount -t tmpfs -o size=${mib}m tmpfs "$0" && exec "$@"`
  return ['unshare', '--map-root-user', '--mount', 'sh', '-c', script, path]
}

/** Writes until nothing more fits. */
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
    const answer = await fetch(`${service.adminUrl}/readyz`)
    const state = (await answer.json()) as { dependencies: Record<string, string> }
    return [answer.status, state.dependencies['store']]
  }
  return { service, client, linesOf, storeState }
}

const NOTHING_STORED = 'The store is unavailable and stored nothing of the link: retry'
const NOT_CONFIRMED =
  'The store did not confirm the link: ' +
  'retry with the same Idempotency-Key, which creates no second link'

function expectRefusal(answer: RawResponse, detail = NOTHING_STORED): void {
  const problem = jsonOf(answer)
  const name = String(problem['type']).split('/').at(-1)
  expect([answer.status, name]).toEqual([503, 'store-unavailable'])
  expect(problem['detail']).toBe(detail)
  expect(Number(headerOf(answer, 'Retry-After'))).toBeGreaterThanOrEqual(1)
}

test(
  'a full disk and its recovery are reported at once: to clients, in the log and by /readyz',
  async () => {
    const { service, client, linesOf, storeState } = await started({ disk: 6 })
    const made = await client.create({ ...body, custom_alias: 'there' })
    expect([made.status, await storeState()]).toEqual([201, [200, 'up']])
    expect((await client.create(body)).status).toBe(201)
    const ballast = join(`/proc/${service.pid}/root`, service.dataDir, 'ballast')
    await fill(ballast)
    for (let i = 0; i < 5; i++) {
      const pauses = watchPauses()
      const begunMs = performance.now()
      const byKey = { 'Idempotency-Key': `full-${i}` }
      const alias = { ...body, custom_alias: `full-${i}` }
      expectRefusal(await client.create(body))
      expectRefusal(await client.create(alias))
      expectRefusal(await client.create(body, byKey), NOT_CONFIRMED)
      const tookMs = performance.now() - begunMs
      pauses.stop()
      expect(tookMs).toBeLessThan(REFUSAL_MS_MAX + pauses.longestMs())
    }
    expect(await storeState()).toEqual([200, 'down'])
    expect((await client.resolve('there')).status).toBe(302)
    expect(linesOf('store unavailable')).toMatchObject([
      { level: 'error', side: 'write', reason: 'database or disk is full' },
    ])
    await rm(ballast)
    // Without a create, the process detects it by a probe.
    await waitFor('the store to be up', async () => (await storeState())[1] === 'up')
    expect(linesOf('store available')).toHaveLength(1)
    expect((await client.create(body)).status).toBe(201)
    const again = await client.create(body, { 'Idempotency-Key': 'full-0' })
    expect(again.status).toBe(201)
  },
  TEST_MS_MAX,
)

test.each([
  ['', 8],
  ['in the pool', 200],
])('a disk that is full at the start %s is reported in one line', async (_, kib) => {
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

test('a folder that cannot be created is reported at once', async () => {
  const begunMs = performance.now()
  const run = await runCurtail(['standalone'], { DATA_DIR: '/proc/foo/data' })
  const words = /^curtail: DATA_DIR \/proc\/foo\/data cannot be used: ENOENT[^\n]*\n$/
  expect(run).toEqual({ exitCode: 1, stdout: '', stderr: expect.stringMatching(words) })
  expect(performance.now() - begunMs).toBeLessThan(10_000)
})

test('parent folders of DATA_DIR are created', async () => {
  const dataDir = join(await folder(), 'a', 'b')
  const service = await startStandalone({ dataDir })
  cleanUps.push(() => service.stop())
  expect((await stat(join(dataDir, 'curtail.db'))).isFile()).toBe(true)
})

/** Runs `what` in the writer thread from `begin` to `end`. Returns both. */
async function inWriterThread(what: (isMarked: string) => string) {
  const box = await folder()
  const [preload, mark, seen] = [join(box, 'break.mjs'), join(box, 'mark'), join(box, 'seen')]
  await writeFile(
    preload,
    `import { existsSync, writeFileSync } from 'node:fs'
     import { isMainThread } from 'node:worker_threads'
     const isMarked = () => existsSync(${JSON.stringify(mark)})
     const look = () => {
       if (!isMarked()) return
       writeFileSync(${JSON.stringify(seen)}, '')
       ${what('isMarked()')}
     }
     if (!isMainThread) setInterval(look, 20).unref()`,
  )
  const begin = async () => {
    await writeFile(mark, '')
    await waitFor('the thread', () => existsSync(seen))
  }
  return { begin, end: () => rm(mark), env: { NODE_OPTIONS: `--import ${preload}` } }
}

test.each([
  ['throws', "throw new Error('broken by the test')", 'broken by the test'],
  ['exits', 'process.exit(0)', 'the writer thread has stopped'],
])(
  'a writer thread that %s terminates the process, so that a restart repairs it',
  async (_, end, message) => {
    const { begin, env } = await inWriterThread(() => end)
    const { service, client, linesOf } = await started({ env })
    expect((await client.create(body)).status).toBe(201)
    await begin()
    expect(await withinDeadline('the end', service.exited)).toBe(1)
    const words = 'the database cannot be written: exiting for a restart'
    expect(linesOf(words)).toMatchObject([{ level: 'fatal', err: { message } }])
  },
  TEST_MS_MAX,
)

/** A thread that waits for its disk: it runs nothing else. */
const hang = (isMarked: string) =>
  `while (${isMarked}) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)`

test(
  'while the disk hangs creates return 503, redirects work; it recovers by itself',
  async () => {
    const { begin, end, env } = await inWriterThread(hang)
    const { client, linesOf, storeState } = await started({ env })
    expect((await client.create({ ...body, custom_alias: 'there' })).status).toBe(201)
    expect((await client.create(body)).status).toBe(201) // a block of codes is at hand
    const byKey = { 'Idempotency-Key': 'hung' }
    const aliased = { ...body, custom_alias: 'hung' }
    await begin()
    const begunMs = performance.now()
    const first = client.create(aliased, byKey)
    expect((await client.resolve('there')).status).toBe(302)
    expect((await client.resolve('none')).status).toBe(404)
    expectRefusal(await first, NOT_CONFIRMED)
    expect(performance.now() - begunMs).toBeLessThan(5 * GROUP_MS_MAX)
    const nextMs = performance.now()
    expectRefusal(await client.create(body)) // at once: the hung group keeps the only thread
    expect(performance.now() - nextMs).toBeLessThan(REFUSAL_MS_MAX)
    expect((await client.resolve('there')).status).toBe(302)
    expect(await storeState()).toEqual([200, 'down'])
    expect(linesOf('store unavailable')).toMatchObject([
      { side: 'write', reason: 'SQLite did not respond within the deadline' },
    ])
    await end()
    await waitFor('the store to be up', async () => (await storeState())[1] === 'up')
    for (let i = 0; i < 2; i++) {
      const made = await client.create(aliased, byKey)
      expect([made.status, jsonOf(made)['short_url']]).toEqual([
        201,
        expect.stringMatching(/\/hung$/),
      ])
    }
  },
  TEST_MS_MAX,
)

test(
  'a stop while the disk hangs completes within 8 s',
  async () => {
    const { begin, env } = await inWriterThread(hang)
    const { service, client } = await started({ env })
    await begin()
    const created = Promise.allSettled([client.create(body)])
    process.kill(service.pid, 'SIGTERM')
    expect(typeof (await withinDeadline('the end', service.exited, STOP_MS_MAX))).toBe('number')
    await created
  },
  TEST_MS_MAX,
)
