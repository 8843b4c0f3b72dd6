// The drain sidecar of a real Envoy: under load no request is lost while one Envoy drains and
// another takes over, over HTTP/1.1 and HTTP/2; what delays a drain, and that no HTTP request
// starts one.
import { connect, type ClientHttp2Session } from 'node:http2'
import { networkInterfaces } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import {
  type DrainedEnvoy,
  startDrainedEnvoy,
  startUpstream,
} from '../../kit/edge/drained-envoy.ts'
import { headerOf, openConnection, type RawConnection } from '../../kit/http/raw-http.ts'
import { withinDeadline, waitFor } from '../../kit/wait-for.ts'

const SETUP_MS_MAX = 330_000 // includes the download of Envoy
const TEST_MS_MAX = 60_000
const CLIENTS = 12
/** Longer than the interval at which the sidecar checks Envoy. */
const CHECK_MS = 300

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

/** Starts an Envoy that is closed after the test, also if the test fails. */
const openEnvoy: typeof startDrainedEnvoy = async (...given) => {
  const envoy = await startDrainedEnvoy(...given)
  opened.push(envoy)
  return envoy
}

/** The Envoy that new connections go to, and the results of the requests. */
interface Load {
  to: DrainedEnvoy
  isDone: boolean
  readonly responses: Map<DrainedEnvoy, number>
  /** Responses that closed their connection. */
  last: number
  readonly lost: string[]
}

function countResponse(load: Load, envoy: DrainedEnvoy): void {
  load.responses.set(envoy, (load.responses.get(envoy) ?? 0) + 1)
}

/** A client that keeps its connection alive, and opens another after `Connection: close`. */
async function sendOverHttp1(load: Load): Promise<void> {
  let connection: RawConnection | undefined
  let to = load.to
  while (!load.isDone) {
    try {
      if (connection === undefined) {
        to = load.to
        connection = await openConnection(to.port)
      }
      const response = await connection.exchange({ path: '/' })
      expect([response.status, response.body.toString()]).toEqual([200, 'served'])
      countResponse(load, to)
      if (headerOf(response, 'Connection') !== 'close') continue
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

function sendOverSession(session: ClientHttp2Session): Promise<number> {
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

/** The same over HTTP/2, several requests at once; it opens another session after GOAWAY. */
async function sendOverHttp2(load: Load): Promise<void> {
  while (!load.isDone) {
    const { to } = load
    const session = connect(`http://127.0.0.1:${String(to.port)}`)
    session.on('error', (error) => load.lost.push(String(error)))
    const ask = async () => {
      while (!load.isDone && !session.closed && !session.destroyed) {
        try {
          expect(await sendOverSession(session)).toBe(200)
          countResponse(load, to)
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
    'responds to every request that it accepted, and its sidecar reports it',
    async () => {
      const env = { DRAIN_SECONDS: '20', DRAIN_QUIET_SECONDS: '1' }
      const [old, young] = await Promise.all([
        openEnvoy(upstream.port, env),
        openEnvoy(upstream.port, env),
      ])
      const load: Load = { to: old, isDone: false, responses: new Map(), last: 0, lost: [] }
      const clients = Array.from({ length: CLIENTS }, () => sendOverHttp1(load))
      clients.push(sendOverHttp2(load), sendOverHttp2(load))
      await waitFor('load', () => (load.responses.get(old) ?? 0) > 500)
      expect(load.last).toBe(0)
      await waitFor(
        'readiness of the old Envoy',
        async () => (await old.ask('/readyz')).status === 200,
      )

      const draining = old.drain()
      // The load balancer has not switched yet: new connections still arrive, and are served.
      await waitFor('connections during the drain', () => load.last > 10 * CLIENTS)
      expect((await old.ask('/readyz')).status).toBe(503)
      load.to = young
      const drained = await draining
      const served = expect.objectContaining({ connections: 0, requests: 0 })
      expect(drained).toMatchObject({ exitCode: 0, outcome: 'drained', served })
      await old.stop()
      const before = load.responses.get(young) ?? 0
      await waitFor(
        'responses of the other Envoy',
        () => (load.responses.get(young) ?? 0) > before + 200,
      )
      load.isDone = true
      await Promise.all(clients)
      expect(load.lost).toEqual([])
      const [by, then] = [load.responses.get(old), load.responses.get(young)].map(String)
      process.stdout.write(
        `drain of Envoy: ${by ?? ''} responses by the old one, ${then ?? ''} by the new one, ` +
          `0 lost, ${String(drained['tookMs'])} ms\n`,
      )
    },
    TEST_MS_MAX,
  )
})

test(
  'a sidecar that stops alone leaves its Envoy draining: the next sidecar stops that Envoy',
  async () => {
    const envoy = await openEnvoy(upstream.port, { DRAIN_SECONDS: '1' })
    envoy.sidecar.child.kill('SIGTERM')
    expect(await withinDeadline('the exit', envoy.sidecar.exited)).toBe(0)
    const readiness = () =>
      fetch(`${envoy.adminUrl}/ready`).then(
        ({ status }) => status,
        () => 'stopped',
      )
    expect(await readiness()).toBe(503)
    const next = await envoy.startSidecar()
    expect(await readiness()).toBe('stopped')
    expect(next.log.map(({ msg }) => msg)).toContain(
      'Envoy is draining in a pod that continues: stopping Envoy, the kubelet restarts it',
    )
  },
  TEST_MS_MAX,
)

test(
  'a request that never completes delays a drain until its deadline at most',
  async () => {
    const envoy = await openEnvoy(upstream.port, { DRAIN_SECONDS: '2' })
    const connection = await openConnection(envoy.port)
    const held = connection.exchange({ path: '/held' })
    await waitFor('the request', () => upstream.held() === 1)
    const served = expect.objectContaining({ connections: 1, requests: 1 })
    expect(await envoy.drain()).toMatchObject({ exitCode: 0, outcome: 'busy', served })
    upstream.release()
    expect(headerOf(await held, 'Connection')).toBe('close')
    connection.close()
  },
  TEST_MS_MAX,
)

test(
  'an idle connection stays open until the deadline, and is not a failure',
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
  'it is ready once Envoy has found pods of each service, and stays ready if they disappear',
  async () => {
    const envoy = await openEnvoy(undefined)
    const readyz = async () => {
      const response = await envoy.ask('/readyz')
      return [response.status, await response.json()]
    }
    const ready = [200, { status: 'ready', dependencies: { envoy: 'ready' } }]
    const CHECKS = 5
    for (let i = 0; i < CHECKS; i++) {
      expect(await readyz()).toEqual([
        503,
        { status: 'not-ready', dependencies: { envoy: 'alone' } },
      ])
      await sleep(CHECK_MS)
    }
    await envoy.movePods(upstream.port)
    await waitFor('readiness', async () => (await readyz())[0] === 200)
    expect((await fetch(`http://127.0.0.1:${String(envoy.port)}/`)).status).toBe(200)
    await envoy.movePods(undefined)
    const pods = () => envoy.stat('^cluster.redirect.membership_healthy$')
    await waitFor('the pods to disappear', async () => (await pods()) === 0)
    await sleep(CHECK_MS)
    expect(await readyz()).toEqual(ready)
  },
  TEST_MS_MAX,
)

/** Addresses at which another machine, or another process of this one, reaches the sidecar. */
const addresses = [
  '127.0.0.1',
  ...Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .filter(({ family, internal }) => family === 'IPv4' && !internal)
    .map(({ address }) => address),
]

test(
  'no request to its port drains or stops Envoy, whatever its source address',
  async () => {
    const envoy = await openEnvoy(upstream.port)
    await waitFor('readiness', async () => (await envoy.ask('/readyz')).status === 200)
    const drainPaths = ['/drain', '/drain_listeners?graceful', '/healthcheck/fail', '/quitquitquit']
    const statuses = new Set<number>()
    for (const address of addresses) {
      for (const path of [...drainPaths, '/readyz', '/livez', '/metrics', '/']) {
        for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'DELETE']) {
          const signal = AbortSignal.timeout(5000)
          const url = `http://${address}:${String(envoy.sidecar.ready['port'])}${path}`
          const response = await fetch(url, { method, signal })
          await response.arrayBuffer()
          if (drainPaths.includes(path)) statuses.add(response.status)
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
  'its port serves probes and metrics; readiness is Envoy’s; a stopped Envoy delays no drain',
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
    const stopped = await envoy.ask('/readyz')
    expect([stopped.status, await stopped.json()]).toEqual([
      503,
      { status: 'not-ready', dependencies: { envoy: 'gone' } },
    ])
    expect(await envoy.drain()).toMatchObject({ exitCode: 0, outcome: 'gone' })
  },
  TEST_MS_MAX,
)
