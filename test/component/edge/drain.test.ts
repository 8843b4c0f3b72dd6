// The graceful shutdown of a standalone process: after SIGTERM under load it responds to every
// accepted request, refuses new connections, and exits with 0; a second signal stops it
// immediately. Every acknowledged link is stored.
import { rm, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { codeOf, createLinkRequest } from '../../kit/http/client.ts'
import {
  headerOf,
  openConnection,
  type RawConnection,
  requestBytes,
} from '../../kit/http/raw-http.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'
import { withinDeadline, waitFor } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 180_000
/** serve.ts waits 15 s for requests, on each of two ports. */
const EXIT_MS_MAX = 40_000
const DUPLICATE_MS = 100
const BUSY = 16
const IDLE = 8
const target = 'https://example.com/'

let dataDir: string

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'curtail-drain-'))
})

afterAll(async () => {
  await rm(dataDir, { recursive: true })
})

interface WorkResult {
  readonly created: string[]
  readonly responses: number
  /** Sent requests without a response. */
  readonly lost: string[]
}

/** Sends requests without a pause until a response closes the connection. */
async function work(connection: RawConnection, name: string): Promise<WorkResult> {
  const created: string[] = []
  const lost: string[] = []
  for (let i = 0; ; i++) {
    try {
      const code = created.at(-1)
      const isCreate = code === undefined || i % 4 === 0
      const request = isCreate
        ? createLinkRequest({ long_url: `${target}${name}/${String(i)}` })
        : { path: `/${code}` }
      const response = await connection.exchange(request)
      if (isCreate) created.push(codeOf(response))
      else expect(response.status).toBe(302)
      if (headerOf(response, 'Connection') === 'close') return { created, responses: i + 1, lost }
    } catch (error) {
      lost.push(`${name}/${String(i)}: ${String(error)}`)
      return { created, responses: i, lost }
    }
  }
}

async function isConnectionRefused(port: number): Promise<boolean> {
  try {
    const connection = await openConnection(port)
    connection.close()
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED'
  }
}

/** Sends the headers and half of the body of a request. */
async function openHalf(service: Standalone, alias: string) {
  const connection = await openConnection(service.port)
  const bytes = requestBytes(createLinkRequest({ long_url: target, custom_alias: alias }))
  connection.send(bytes.subarray(0, -10))
  return {
    connection,
    finish: () => {
      connection.send(bytes.subarray(-10))
    },
  }
}

/** Waits until the process has read all bytes sent so far: a later connection gets a response. */
async function settle(service: Standalone): Promise<void> {
  const connection = await openConnection(service.port)
  await connection.exchange({ path: '/none' })
  connection.close()
}

describe('SIGTERM under load', () => {
  let worked: WorkResult[] = []

  test(
    'loses no request, refuses connections, and exits with 0',
    async () => {
      const service = await startStandalone({ dataDir })
      const open = (count: number) =>
        Promise.all(Array.from({ length: count }, () => openConnection(service.port)))
      const idle = await open(IDLE)
      for (const connection of idle) await connection.exchange({ path: '/none' })
      const half = await openHalf(service, 'half')
      const working = (await open(BUSY)).map((connection, i) => work(connection, String(i)))
      await settle(service)

      const ready = () => fetch(`${service.adminUrl}/readyz`)
      expect((await ready()).status).toBe(200)
      service.child.kill('SIGTERM')
      await waitFor('new connections to be refused', () => isConnectionRefused(service.port))
      // A request is still in flight, so the process continues and reports the drain.
      expect(await (await ready()).json()).toMatchObject({ status: 'draining' })
      // Idle connections stay open for a second, because a request may be in transit.
      const lastRequests = idle
        .slice(0, IDLE / 2)
        .map((connection) => connection.exchange({ path: '/none' }))
      for (const response of await Promise.all(lastRequests)) {
        expect([response.status, headerOf(response, 'Connection')]).toEqual([404, 'close'])
      }
      worked = await Promise.all(working)
      expect(worked.flatMap(({ lost }) => lost)).toEqual([])
      const closes = await Promise.all(idle.map(({ closed }) => closed))
      expect(closes).toEqual(idle.map(() => 'end'))

      half.finish()
      expect(codeOf(await half.connection.nextResponse())).toBe('half')
      expect(await half.connection.closed).toBe('end')
      expect(await withinDeadline('the exit', service.exited, EXIT_MS_MAX)).toBe(0)
      expect(service.log.map(({ msg }) => msg)).toEqual(['ready', 'draining', 'stopped'])
    },
    TEST_MS_MAX,
  )

  test(
    'every acknowledged link is stored',
    async () => {
      expect(worked).toHaveLength(BUSY)
      const service = await startStandalone({ dataDir })
      const connection = await openConnection(service.port)
      const codes = ['half', ...worked.flatMap(({ created }) => created)]
      for (const code of codes) {
        expect((await connection.exchange({ path: `/${code}` })).status).toBe(302)
      }
      connection.close()
      await service.stop()
    },
    TEST_MS_MAX,
  )
})

test(
  'the process exits soon without connections; an unfinished request delays the exit',
  async () => {
    const start = async (dir: string) => startStandalone({ dataDir: join(dataDir, dir) })
    const [quiet, held] = [await start('quiet'), await start('held')]
    const half = await openHalf(held, 'never')
    await settle(held)
    const startMs = performance.now()
    for (const { child } of [quiet, held]) child.kill('SIGTERM')
    expect(await withinDeadline('the exit without connections', quiet.exited, 5000)).toBe(0)
    expect(
      await withinDeadline('the exit with an unfinished request', held.exited, EXIT_MS_MAX),
    ).toBe(0)
    expect(performance.now() - startMs).toBeGreaterThan(3000)
    half.connection.close()
  },
  TEST_MS_MAX,
)

test.each(['SIGTERM', 'SIGINT'] as const)(
  'a second %s stops the process immediately; a duplicate within 100 ms does not',
  async (signal) => {
    const service = await startStandalone({ dataDir: join(dataDir, signal) })
    const half = await openHalf(service, 'held')
    await settle(service)
    // The kernel merges two pending signals of one name.
    service.child.kill('SIGINT')
    service.child.kill('SIGTERM')
    await waitFor('the drain', () => isConnectionRefused(service.port))
    const drainingMs = performance.now()
    await waitFor(
      'the time for duplicates to pass',
      () => performance.now() - drainingMs > DUPLICATE_MS,
    )
    expect(service.child.exitCode).toBeNull()
    service.child.kill(signal)
    expect(await withinDeadline('the exit', service.exited, 5000)).toBe(signal)
    half.connection.close()
  },
  TEST_MS_MAX,
)
