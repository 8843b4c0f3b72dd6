// HTTPS at the edge, with a certificate from a Secret that is renewed while clients ask: the new
// one is shown without a restart, and no request fails.
import { Agent, request } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { createAuthority } from '../component/grpc-certificates.ts'
import { waitFor } from '../component/wait-for.ts'
import { getObject, kubectl } from './cluster.ts'
import { storeCertificate } from './faults.ts'
import {
  edgeUrl,
  ensureRelease,
  INSTALL_MS_MAX,
  podsOf,
  RELEASE,
  shorten,
  upgradeRelease,
} from './release.ts'

const TEST_MS_MAX = 8 * 60_000
/** The kubelet looks after Secrets once a minute, and somewhat later where it is busy. */
const RENEWED_MS_MAX = 180_000
const ASK_EVERY_MS = 50
const ASK_MS_MAX = 10_000
/** Rounds of requests to every pod: with the others, well below what one client may ask. */
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

interface Answer {
  readonly status: number
  /** Who signed the certificate that was shown. */
  readonly issuer: string
}

/** One request over HTTPS, on a connection of its own unless `agent` is given. */
async function ask(path: string, agent?: Agent): Promise<Answer> {
  const { hostname } = new URL(edge)
  const own = agent ?? new Agent({ keepAlive: false })
  const trusted = [first.cert, second.cert]
  const options = { host: hostname, path, agent: own, ca: trusted, servername: HOST }
  return new Promise((resolve, reject) => {
    const asking = request({ ...options, signal: AbortSignal.timeout(ASK_MS_MAX) }, (res) => {
      const socket = res.socket as unknown as {
        getPeerCertificate: () => { issuer?: { CN?: string } }
      }
      const issuer = socket.getPeerCertificate().issuer?.CN ?? 'nobody'
      res.resume()
      res.on('end', () => {
        resolve({ status: res.statusCode ?? 0, issuer })
      })
    })
    asking.on('error', reject)
    asking.end()
  })
}

test(
  'a renewed certificate is shown by the same pods, and no request fails meanwhile',
  async () => {
    const path = `/${await shorten(edge, 'https://example.com/tls')}`
    expect(await ask(path)).toEqual({ status: 302, issuer: 'first' })
    const pods = await podsOf('edge')
    const restarts = await countRestarts(pods)
    const load = startAsking(path)
    try {
      await storeCertificate(SECRET, second.issue([HOST]))
      await waitFor(
        'the new certificate on every pod',
        async () => {
          await sleep(ROUND_EVERY_MS)
          const answers = await Promise.all(Array.from({ length: 12 }, () => ask(path)))
          return answers.every(({ issuer }) => issuer === 'second')
        },
        RENEWED_MS_MAX,
      )
    } finally {
      const { asked, faults } = await load.stop()
      expect(faults).toEqual([])
      expect(asked).toBeGreaterThan(100)
    }
    expect(await podsOf('edge')).toEqual(pods)
    expect(await countRestarts(pods)).toBe(restarts)
  },
  TEST_MS_MAX,
)

/** Asks at a steady pace: by turns on a connection that is kept, and on one of its own. */
function startAsking(path: string) {
  const kept = new Agent({ keepAlive: true })
  const faults: string[] = []
  const open = new Set<Promise<void>>()
  let asked = 0
  const timer = setInterval(() => {
    const asking = ask(path, asked++ % 2 === 0 ? kept : undefined).then(
      ({ status }) => {
        if (status !== 302) faults.push(String(status))
      },
      (error: unknown) => {
        faults.push(String(error))
      },
    )
    open.add(asking)
    void asking.finally(() => open.delete(asking))
  }, ASK_EVERY_MS)
  return {
    async stop() {
      clearInterval(timer)
      await Promise.all(open)
      kept.destroy()
      return { asked, faults }
    },
  }
}

/** How often containers of these pods were started anew: one before them may be on its way out. */
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
