// HTTPS at the edge with a certificate from a Secret that is renewed under load: the edge presents
// the new certificate without a restart, and no request fails.
import { Agent, request } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { createAuthority } from '../kit/ratelimit/grpc-certificates.ts'
import { waitFor } from '../kit/wait-for.ts'
import { getObject, kubectl } from './cluster.ts'
import { storeCertificate } from './faults.ts'
import {
  edgeUrl,
  ensureRelease,
  INSTALL_MS_MAX,
  podsOf,
  RELEASE,
  createLink,
  updateMounts,
  upgradeRelease,
} from './release.ts'

const TEST_MS_MAX = 8 * 60_000
const RENEWED_MS_MAX = 180_000
/** Requests of the load before and after the renewal. */
const REQUESTS = 60
const REQUEST_EVERY_MS = 50
const REQUEST_MS_MAX = 10_000
/** Rounds of requests to every pod: with the load, well below the limit of one client. */
const ROUND_EVERY_MS = 500
const SECRET = 'edge-certificate'
const HOST = 'short.test'

const first = createAuthority('first')
const second = createAuthority('second')

let edge: string

beforeAll(async () => {
  await ensureRelease()
  await storeCertificate(SECRET, first.issue([HOST]))
  const tls = ['edge.tls.enabled=true', `edge.tls.existingSecret=${SECRET}`]
  await upgradeRelease(...tls.flatMap((value) => ['--set', value]))
  edge = await edgeUrl()
}, INSTALL_MS_MAX + TEST_MS_MAX)

afterAll(async () => {
  await upgradeRelease()
  await kubectl('delete', 'secret', SECRET, '--namespace', RELEASE)
}, TEST_MS_MAX)

interface Response {
  readonly status: number
  /** The issuer of the certificate that the edge presented. */
  readonly issuer: string
}

/** Sends one request over HTTPS, on a new connection unless there is an `agent`. */
async function send(path: string, agent?: Agent): Promise<Response> {
  const { hostname } = new URL(edge)
  const own = agent ?? new Agent({ keepAlive: false })
  const trusted = [first.cert, second.cert]
  const options = { host: hostname, path, agent: own, ca: trusted, servername: HOST }
  return new Promise((resolve, reject) => {
    const req = request({ ...options, signal: AbortSignal.timeout(REQUEST_MS_MAX) }, (res) => {
      const socket = res.socket as unknown as {
        getPeerCertificate: () => { issuer?: { CN?: string } }
      }
      const issuer = socket.getPeerCertificate().issuer?.CN ?? 'none'
      res.resume()
      res.on('end', () => {
        resolve({ status: res.statusCode ?? 0, issuer })
      })
    })
    req.on('error', reject)
    req.end()
  })
}

test(
  'the same pods present a renewed certificate, and no request fails',
  async () => {
    const path = `/${await createLink(edge, 'https://example.com/tls')}`
    expect(await send(path)).toEqual({ status: 302, issuer: 'first' })
    const pods = await podsOf('edge')
    const restarts = await countRestarts(pods)
    const load = startLoad(path)
    try {
      await load.waitForRequests(REQUESTS)
      await storeCertificate(SECRET, second.issue([HOST]))
      await waitFor(
        'the new certificate on every pod',
        async () => {
          await updateMounts('edge')
          await sleep(ROUND_EVERY_MS)
          const responses = await Promise.all(Array.from({ length: 12 }, () => send(path)))
          return responses.every(({ issuer }) => issuer === 'second')
        },
        RENEWED_MS_MAX,
      )
      await load.waitForRequests(REQUESTS)
    } finally {
      const { requests, failures } = await load.stop()
      expect(failures).toEqual([])
      expect(requests).toBeGreaterThan(100)
    }
    expect(await podsOf('edge')).toEqual(pods)
    expect(await countRestarts(pods)).toBe(restarts)
  },
  TEST_MS_MAX,
)

/** Sends requests at a constant rate, alternately on kept-alive and on new connections. */
function startLoad(path: string) {
  const keepAlive = new Agent({ keepAlive: true })
  const failures: string[] = []
  const inFlight = new Set<Promise<void>>()
  let requests = 0
  const timer = setInterval(() => {
    const sent = send(path, requests++ % 2 === 0 ? keepAlive : undefined).then(
      ({ status }) => {
        if (status !== 302) failures.push(String(status))
      },
      (error: unknown) => {
        failures.push(String(error))
      },
    )
    inFlight.add(sent)
    void sent.finally(() => inFlight.delete(sent))
  }, REQUEST_EVERY_MS)
  return {
    /** Waits for this many further requests. */
    waitForRequests: (count: number) => {
      const total = requests + count
      return waitFor(`${count} requests`, () => requests >= total)
    },
    async stop() {
      clearInterval(timer)
      await Promise.all(inFlight)
      keepAlive.destroy()
      return { requests, failures }
    },
  }
}

/** Container restarts of these pods; a pod of an earlier revision may still be terminating. */
async function countRestarts(pods: readonly string[]): Promise<number> {
  interface Pods {
    readonly items: readonly {
      readonly metadata: { readonly name: string }
      readonly status: {
        readonly containerStatuses: readonly { restartCount: number }[]
        readonly initContainerStatuses: readonly { restartCount: number }[]
      }
    }[]
  }
  const label = 'app.kubernetes.io/component=edge'
  const { items } = await getObject<Pods>('pods', '--namespace', RELEASE, '-l', label)
  const ours = items.filter(({ metadata }) => pods.includes(metadata.name))
  const counts = ours.flatMap(({ status }) => [
    ...status.initContainerStatuses,
    ...status.containerStatuses,
  ])
  return counts.reduce((sum, { restartCount }) => sum + restartCount, 0)
}
