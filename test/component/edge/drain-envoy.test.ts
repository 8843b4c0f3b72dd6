// The drain sidecar of a real Envoy: no request is lost under load, over HTTP/1.1 and HTTP/2, while
// one Envoy drains and another takes over; the causes of a delayed drain; no HTTP request starts a
// drain.
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
const TEST_MS_MAX = 180_000
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

/** Starts an Envoy that is closed after the test, even if the test fails. */
const openEnvoy: typeof startDrainedEnvoy = async (...given) => {
  const envoy = await startDrainedEnvoy(...given)
  opened.push(envoy)
  return envoy
}

/** The Envoy to which clients connect, and the results of their requests. */
interface Load {
  to: DrainedEnvoy
  isDone: boolean
  readonly responses: Map<DrainedEnvoy, number>
  /** The number of responses that closed their connection. */
  closing: number
  readonly lost: string[]
}

function countResponse(load: Load, envoy: DrainedEnvoy): void {
  load.responses.set(envoy, (load.responses.get(envoy) ?? 0) + 1)
}

/** Sends requests on a kept-alive connection, and reconnects after `Connection: close`. */
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
      load.closing++
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

/** Sends concurrent requests over HTTP/2; reconnects after GOAWAY, as RFC 9113 §8.7 allows. */
async function sendOverHttp2(load: Load): Promise<void> {
  while (!load.isDone) {
    const { to } = load
    const session = connect(`http://127.0.0.1:${String(to.port)}`)
    session.on('error', (error) => load.lost.push(String(error)))
    const sendAll = async () => {
      while (!load.isDone && !session.closed && !session.destroyed) {
        try {
          expect(await sendOverSession(session)).toBe(200)
          countResponse(load, to)
        } catch (error) {
          if (String(error).endsWith('NGHTTP2_REFUSED_STREAM')) session.close()
          else load.lost.push(String(error))
        }
      }
    }
    await Promise.all([sendAll(), sendAll(), sendAll()])
    load.closing++
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
      const load: Load = { to: old, isDone: false, responses: new Map(), closing: 0, lost: [] }
      const clients = Array.from({ length: CLIENTS }, () => sendOverHttp1(load))
      clients.push(sendOverHttp2(load), sendOverHttp2(load))
      await waitFor('load', () => (load.responses.get(old) ?? 0) > 500)
      expect(load.closing).toBe(0)
      const isReady = async () => (await old.request('/readyz')).status === 200
      await waitFor('readiness of the old Envoy', isReady)

      const draining = old.drain()
      // The load balancer has not switched yet: new connections still arrive, and are served.
      await waitFor('connections during the drain', () => load.closing > 10 * CLIENTS)
      expect((await old.request('/readyz')).status).toBe(503)
      load.to = young
      const drained = await draining
      const served = expect.objectContaining({ connections: 0, requests: 0 })
      expect(drained).toMatchObject({ exitCode: 0, outcome: 'drained', served })
      await old.stop()
      const before = load.responses.get(young) ?? 0
      const isServing = () => (load.responses.get(young) ?? 0) > before + 200
      await waitFor('responses of the other Envoy', isServing)
      load.isDone = true
      await Promise.all(clients)
      expect(load.lost).toEqual([])
      const [ofOld, ofYoung] = [load.responses.get(old), load.responses.get(young)].map(String)
      process.stdout.write(
        `drain of Envoy: ${ofOld ?? ''} responses of the old, ${ofYoung ?? ''} of the new Envoy, ` +
          `0 lost, ${String(drained['tookMs'])} ms\n`,
      )
    },
    TEST_MS_MAX,
  )
})

test(
  'a restarted sidecar stops an Envoy that its predecessor left draining',
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
    const stopping =
      'Envoy is draining, but its pod is not terminating: stopping Envoy, the kubelet restarts it'
    await waitFor('the line of the stop', () => next.log.some(({ msg }) => msg === stopping))
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
  'the sidecar is ready once Envoy has pods of each service, and stays ready without them',
  async () => {
    const envoy = await openEnvoy(undefined)
    const readyz = async () => {
      const response = await envoy.request('/readyz')
      return [response.status, await response.json()]
    }
    const ready = [200, { status: 'ready', dependencies: { envoy: 'ready' } }]
    const CHECKS = 5
    for (let i = 0; i < CHECKS; i++) {
      expect(await readyz()).toEqual([
        503,
        { status: 'not-ready', dependencies: { envoy: 'no-upstream' } },
      ])
      await sleep(CHECK_MS)
    }
    await envoy.setPods(upstream.port)
    await waitFor('readiness', async () => (await readyz())[0] === 200)
    expect((await fetch(`http://127.0.0.1:${String(envoy.port)}/`)).status).toBe(200)
    await envoy.setPods(undefined)
    const pods = () => envoy.stat('^cluster.redirect.membership_healthy$')
    await waitFor('the pods to disappear', async () => (await pods()) === 0)
    await sleep(CHECK_MS)
    expect(await readyz()).toEqual(ready)
  },
  TEST_MS_MAX,
)

/** The addresses at which this and other machines reach the sidecar. */
const addresses = [
  '127.0.0.1',
  ...Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .filter(({ family, internal }) => family === 'IPv4' && !internal)
    .map(({ address }) => address),
]

test(
  'the sidecar drains or stops Envoy on no request, from no source address',
  async () => {
    const envoy = await openEnvoy(upstream.port)
    await waitFor('readiness', async () => (await envoy.request('/readyz')).status === 200)
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
    expect((await envoy.request('/readyz')).status).toBe(200)
    expect(envoy.sidecar.log.map(({ msg }) => msg)).not.toContain('draining Envoy')
  },
  TEST_MS_MAX,
)

test(
  'the sidecar serves probes, metrics and the readiness of Envoy, and exits after Envoy',
  async () => {
    const envoy = await openEnvoy(upstream.port)
    await waitFor('readiness', async () => (await envoy.request('/readyz')).status === 200)
    expect((await envoy.request('/livez')).status).toBe(200)
    expect(await (await envoy.request('/metrics')).text()).toContain('role="drain"')
    const ready = await envoy.request('/readyz')
    expect([ready.status, await ready.json()]).toEqual([
      200,
      { status: 'ready', dependencies: { envoy: 'ready' } },
    ])
    await envoy.stop()
    const stopped = await envoy.request('/readyz')
    expect([stopped.status, await stopped.json()]).toEqual([
      503,
      { status: 'not-ready', dependencies: { envoy: 'exited' } },
    ])
    expect(await envoy.drain()).toMatchObject({ exitCode: 0, outcome: 'exited' })
  },
  TEST_MS_MAX,
)
