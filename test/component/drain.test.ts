// The end of the real standalone process: SIGTERM under load answers every request that was
// accepted, refuses new connections, and ends with 0; a second signal ends at once. What was told
// is stored.
import { rm, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { codeOf, createAsk } from './client.ts'
import { headerOf, openConnection, type RawConnection, requestBytes } from './raw-http.ts'
import { type Standalone, startStandalone } from './standalone.ts'
import { inTime, waitFor } from './wait-for.ts'

const TEST_MS_MAX = 60_000
/** serve.ts waits 15 s for requests, on both ports one after the other. */
const END_MS_MAX = 40_000
const ECHO_MS = 100
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

interface Worked {
  readonly created: string[]
  readonly answers: number
  /** Requests that were sent and got no answer. */
  readonly lost: string[]
}

/** Asks without pause until it is told that its connection closes. */
async function work(connection: RawConnection, name: string): Promise<Worked> {
  const created: string[] = []
  const lost: string[] = []
  for (let i = 0; ; i++) {
    try {
      const code = created.at(-1)
      const isCreate = code === undefined || i % 4 === 0
      const ask = isCreate
        ? createAsk({ long_url: `${target}${name}/${String(i)}` })
        : { path: `/${code}` }
      const answer = await connection.exchange(ask)
      if (isCreate) created.push(codeOf(answer))
      else expect(answer.status).toBe(302)
      if (headerOf(answer, 'Connection') === 'close') return { created, answers: i + 1, lost }
    } catch (error) {
      lost.push(`${name}/${String(i)}: ${String(error)}`)
      return { created, answers: i, lost }
    }
  }
}

async function isRefused(port: number): Promise<boolean> {
  try {
    const connection = await openConnection(port)
    connection.close()
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED'
  }
}

/** A request whose head and half of whose body have been sent. */
async function openHalf(service: Standalone, alias: string) {
  const connection = await openConnection(service.port)
  const bytes = requestBytes(createAsk({ long_url: target, custom_alias: alias }))
  connection.send(bytes.subarray(0, -10))
  return {
    connection,
    finish: () => {
      connection.send(bytes.subarray(-10))
    },
  }
}

/** Waits until everything sent so far has been read: a later connection has been answered. */
async function settle(service: Standalone): Promise<void> {
  const connection = await openConnection(service.port)
  await connection.exchange({ path: '/none' })
  connection.close()
}

describe('SIGTERM under load', () => {
  let worked: Worked[] = []

  test(
    'loses no request, refuses new connections, and ends with 0',
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
      await waitFor('new connections to be refused', () => isRefused(service.port))
      // Its request is under way, so the process stays, and says that it is ending.
      expect(await (await ready()).json()).toMatchObject({ status: 'draining' })
      // An idle connection is not cut in the first second: a request may be arriving on it.
      const late = idle
        .slice(0, IDLE / 2)
        .map((connection) => connection.exchange({ path: '/none' }))
      for (const answer of await Promise.all(late)) {
        expect([answer.status, headerOf(answer, 'Connection')]).toEqual([404, 'close'])
      }
      worked = await Promise.all(working)
      expect(worked.flatMap(({ lost }) => lost)).toEqual([])
      const ends = await Promise.all(idle.map(({ ended }) => ended))
      expect(ends).toEqual(idle.map(() => 'end'))

      half.finish()
      expect(codeOf(await half.connection.answer())).toBe('half')
      expect(await half.connection.ended).toBe('end')
      expect(await inTime('the end', service.ended, END_MS_MAX)).toBe(0)
      expect(service.log.map(({ msg }) => msg)).toEqual(['ready', 'draining', 'stopped'])
    },
    TEST_MS_MAX,
  )

  test(
    'what was told is stored',
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
  'with nobody there it ends soon; a half-sent request that never ends holds it for a while',
  async () => {
    const begin = async (dir: string) => startStandalone({ dataDir: join(dataDir, dir) })
    const [quiet, held] = [await begin('quiet'), await begin('held')]
    const half = await openHalf(held, 'never')
    await settle(held)
    const begunMs = performance.now()
    for (const { child } of [quiet, held]) child.kill('SIGTERM')
    expect(await inTime('the end of the quiet one', quiet.ended, 5000)).toBe(0)
    expect(await inTime('the end of the held one', held.ended, END_MS_MAX)).toBe(0)
    expect(performance.now() - begunMs).toBeGreaterThan(3000)
    half.connection.close()
  },
  TEST_MS_MAX,
)

test.each([
  ['SIGTERM', 143],
  ['SIGINT', 130],
] as const)(
  'a second %s ends at once; its echo within 100 ms does not',
  async (signal, exitCode) => {
    const service = await startStandalone({ dataDir: join(dataDir, signal) })
    const half = await openHalf(service, 'held')
    await settle(service)
    // Two signals of one name would be one to the system.
    service.child.kill('SIGINT')
    service.child.kill('SIGTERM')
    await waitFor('the drain', () => isRefused(service.port))
    const refusedMs = performance.now()
    await waitFor('the echo’s time to pass', () => performance.now() - refusedMs > ECHO_MS)
    expect(service.child.exitCode).toBeNull()
    service.child.kill(signal)
    expect(await inTime('the end', service.ended, 5000)).toBe(exitCode)
    half.connection.close()
  },
  TEST_MS_MAX,
)
