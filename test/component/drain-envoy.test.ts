// The drain sidecar beside a real Envoy: under load no request is lost while one Envoy is drained
// and another takes over, over HTTP/1.1 and HTTP/2; what holds a drain, and that no request starts
// one.
import { connect, type ClientHttp2Session } from 'node:http2'
import { networkInterfaces } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { type DrainedEnvoy, startDrainedEnvoy, startUpstream } from './drained-envoy.ts'
import { headerOf, openConnection, type RawConnection } from './raw-http.ts'
import { inTime, waitFor } from './wait-for.ts'

const SETUP_MS_MAX = 330_000 // Envoy may have to be fetched
const TEST_MS_MAX = 60_000
const CLIENTS = 12
/** Longer than the sidecar lets pass between two looks at Envoy. */
const LOOK_MS = 300

let upstream: Awaited<ReturnType<typeof startUpstream>>

beforeAll(async () => {
  upstream = await startUpstream()
  await (await startDrainedEnvoy(upstream.port)).close()
}, SETUP_MS_MAX)

afterAll(() => {
  upstream.close()
})

const opened: DrainedEnvoy[] = []

afterEach(async () => {
  await Promise.all(opened.splice(0).map((envoy) => envoy.close()))
})

/** One that is closed at the end of the test, however that goes. */
const openEnvoy: typeof startDrainedEnvoy = async (...given) => {
  const envoy = await startDrainedEnvoy(...given)
  opened.push(envoy)
  return envoy
}

/** Where new connections go, and what became of the requests. */
interface Load {
  to: DrainedEnvoy
  isOver: boolean
  readonly answered: Map<DrainedEnvoy, number>
  /** Answers that were their connection's last. */
  last: number
  readonly lost: string[]
}

function note(load: Load, envoy: DrainedEnvoy): void {
  load.answered.set(envoy, (load.answered.get(envoy) ?? 0) + 1)
}

/** A client that keeps its connection alive, and opens another where it is told to close it. */
async function askByConnection(load: Load): Promise<void> {
  let connection: RawConnection | undefined
  let to = load.to
  while (!load.isOver) {
    try {
      if (connection === undefined) {
        to = load.to
        connection = await openConnection(to.port)
      }
      const answer = await connection.exchange({ path: '/' })
      expect([answer.status, answer.body.toString()]).toEqual([200, 'answered'])
      note(load, to)
      if (headerOf(answer, 'Connection') !== 'close') continue
      load.last++
      connection.close()
      connection = undefined
    } catch (error) {
      load.lost.push(String(error))
      connection = undefined
    }
  }
  connection?.close()
}

function askOver(session: ClientHttp2Session): Promise<number> {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ':path': '/' })
    let status = 0
    stream.on('response', (headers) => {
      status = headers[':status'] ?? 0
    })
    stream.on('error', reject)
    stream.on('end', () => {
      resolve(status)
    })
    stream.resume()
  })
}

/** The same over HTTP/2, several requests at once; it opens another session when sent away. */
async function askBySession(load: Load): Promise<void> {
  while (!load.isOver) {
    const { to } = load
    const session = connect(`http://127.0.0.1:${String(to.port)}`)
    session.on('error', (error) => load.lost.push(String(error)))
    const ask = async () => {
      while (!load.isOver && !session.closed && !session.destroyed) {
        try {
          expect(await askOver(session)).toBe(200)
          note(load, to)
        } catch (error) {
          load.lost.push(String(error))
        }
      }
    }
    await Promise.all([ask(), ask(), ask()])
    load.last++
    session.close()
  }
}

describe('an Envoy that is drained under load while another takes over', () => {
  test(
    'answers every request that it accepted, and its sidecar says so',
    async () => {
      const env = { DRAIN_SECONDS: '20', DRAIN_QUIET_SECONDS: '1' }
      const [old, young] = await Promise.all([
        openEnvoy(upstream.port, env),
        openEnvoy(upstream.port, env),
      ])
      const load: Load = { to: old, isOver: false, answered: new Map(), last: 0, lost: [] }
      const clients = Array.from({ length: CLIENTS }, () => askByConnection(load))
      clients.push(askBySession(load), askBySession(load))
      await waitFor('load', () => (load.answered.get(old) ?? 0) > 500)
      expect(load.last).toBe(0)
      await waitFor('the old one', async () => (await old.ask('/readyz')).status === 200)

      const draining = old.drain()
      // Whoever balances load has not heard of it yet: connections still come, and are served.
      await waitFor('connections that came late', () => load.last > 10 * CLIENTS)
      expect((await old.ask('/readyz')).status).toBe(503)
      load.to = young
      const drained = await draining
      const served = expect.objectContaining({ connections: 0, requests: 0 })
      expect(drained).toMatchObject({ exitCode: 0, outcome: 'drained', served })
      await old.stop()
      const before = load.answered.get(young) ?? 0
      await waitFor('the other', () => (load.answered.get(young) ?? 0) > before + 200)
      load.isOver = true
      await Promise.all(clients)
      expect(load.lost).toEqual([])
      const [by, then] = [load.answered.get(old), load.answered.get(young)].map(String)
      process.stdout.write(
        `drain of Envoy: ${by ?? ''} answers by the old one, ${then ?? ''} by the new one, ` +
          `0 lost, ${String(drained['tookMs'])} ms\n`,
      )
    },
    TEST_MS_MAX,
  )
})

test(
  'a sidecar that was ended alone leaves no draining Envoy behind: the next one ends it',
  async () => {
    const envoy = await openEnvoy(upstream.port, { DRAIN_SECONDS: '1' })
    envoy.sidecar.child.kill('SIGTERM')
    expect(await inTime('the end', envoy.sidecar.ended)).toBe(0)
    const readiness = () =>
      fetch(`${envoy.adminUrl}/ready`).then(
        ({ status }) => status,
        () => 'gone',
      )
    expect(await readiness()).toBe(503)
    const next = await envoy.startSidecar()
    expect(await readiness()).toBe('gone')
    expect(next.log.map(({ msg }) => msg)).toContain(
      'Envoy is draining in a pod that continues: stopping Envoy, the kubelet restarts it',
    )
  },
  TEST_MS_MAX,
)

test(
  'a request that never completes holds a drain no longer than its deadline',
  async () => {
    const envoy = await openEnvoy(upstream.port, { DRAIN_SECONDS: '2' })
    const connection = await openConnection(envoy.port)
    const held = connection.exchange({ path: '/held' })
    await waitFor('the request', () => upstream.held() === 1)
    const served = expect.objectContaining({ connections: 1, requests: 1 })
    expect(await envoy.drain()).toMatchObject({ exitCode: 0, outcome: 'busy', served })
    upstream.letGo()
    expect(headerOf(await held, 'Connection')).toBe('close')
    connection.close()
  },
  TEST_MS_MAX,
)

test(
  'an idle connection is left open until the deadline, and is no failure',
  async () => {
    const envoy = await openEnvoy(upstream.port, { DRAIN_SECONDS: '1' })
    const connection = await openConnection(envoy.port)
    await connection.exchange({ path: '/' })
    const served = expect.objectContaining({ connections: 1, requests: 0 })
    expect(await envoy.drain()).toMatchObject({ exitCode: 0, outcome: 'idle', served })
    expect(headerOf(await connection.exchange({ path: '/' }), 'Connection')).toBe('close')
  },
  TEST_MS_MAX,
)

test(
  'it is ready once Envoy has found pods of each service, and stays so when they go again',
  async () => {
    const envoy = await openEnvoy(undefined)
    const readyz = async () => {
      const answer = await envoy.ask('/readyz')
      return [answer.status, await answer.json()]
    }
    const ready = [200, { status: 'ready', dependencies: { envoy: 'ready' } }]
    const LOOKS = 5
    for (let i = 0; i < LOOKS; i++) {
      expect(await readyz()).toEqual([
        503,
        { status: 'not-ready', dependencies: { envoy: 'alone' } },
      ])
      await sleep(LOOK_MS)
    }
    await envoy.movePods(upstream.port)
    await waitFor('readiness', async () => (await readyz())[0] === 200)
    expect((await fetch(`http://127.0.0.1:${String(envoy.port)}/`)).status).toBe(200)
    await envoy.movePods(undefined)
    const pods = () => envoy.stat('^cluster.redirect.membership_healthy$')
    await waitFor('the pods to be gone', async () => (await pods()) === 0)
    await sleep(LOOK_MS)
    expect(await readyz()).toEqual(ready)
  },
  TEST_MS_MAX,
)

/** Addresses by which another machine, or another process of this one, reaches the sidecar. */
const addresses = [
  '127.0.0.1',
  ...Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .filter(({ family, internal }) => family === 'IPv4' && !internal)
    .map(({ address }) => address),
]

test(
  'no request to its port drains or stops Envoy, from whatever address it comes',
  async () => {
    const envoy = await openEnvoy(upstream.port)
    await waitFor('readiness', async () => (await envoy.ask('/readyz')).status === 200)
    const orders = ['/drain', '/drain_listeners?graceful', '/healthcheck/fail', '/quitquitquit']
    const statuses = new Set<number>()
    for (const address of addresses) {
      for (const path of [...orders, '/readyz', '/livez', '/metrics', '/']) {
        for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'DELETE']) {
          const signal = AbortSignal.timeout(5000)
          const url = `http://${address}:${String(envoy.sidecar.ready['port'])}${path}`
          const response = await fetch(url, { method, signal })
          await response.arrayBuffer()
          if (orders.includes(path)) statuses.add(response.status)
        }
      }
    }
    expect([...statuses]).toEqual([404])
    expect((await fetch(`${envoy.adminUrl}/ready`)).status).toBe(200)
    expect((await envoy.ask('/readyz')).status).toBe(200)
    expect(envoy.sidecar.log.map(({ msg }) => msg)).not.toContain('draining Envoy')
  },
  TEST_MS_MAX,
)

test(
  'its port: probes and metrics; readiness is Envoy’s own; an Envoy that has stopped holds nothing',
  async () => {
    const envoy = await openEnvoy(upstream.port)
    await waitFor('readiness', async () => (await envoy.ask('/readyz')).status === 200)
    expect((await envoy.ask('/livez')).status).toBe(200)
    expect(await (await envoy.ask('/metrics')).text()).toContain('role="drain"')
    const ready = await envoy.ask('/readyz')
    expect([ready.status, await ready.json()]).toEqual([
      200,
      { status: 'ready', dependencies: { envoy: 'ready' } },
    ])
    await envoy.stop()
    const gone = await envoy.ask('/readyz')
    expect([gone.status, await gone.json()]).toEqual([
      503,
      { status: 'not-ready', dependencies: { envoy: 'gone' } },
    ])
    expect(await envoy.drain()).toMatchObject({ exitCode: 0, outcome: 'gone' })
  },
  TEST_MS_MAX,
)
