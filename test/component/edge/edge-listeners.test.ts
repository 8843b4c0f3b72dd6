// The listeners of a real Envoy with the product's bootstrap: TLS with HTTP/2 and HTTP/1.1, the
// replacement of its certificate under load, and the PROXY protocol. Envoy accepts every rendering.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { connect as connectHttp2 } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { EdgeSettings } from '../../../envoy/edge-settings.ts'
import { renderBootstrap, renderCertificate } from '../../../envoy/render-bootstrap.ts'
import { findEnvoy } from '../../dependencies/envoy.ts'
import { freePort } from '../../dependencies/free-ports.ts'
import { openUnfinishedRequests } from '../../kit/http/unfinished-requests.ts'
import { BASE_URL, type Edge, type Pod, startEdge, startPod } from '../../kit/edge/edge.ts'
import { createAuthority } from '../../kit/ratelimit/grpc-certificates.ts'
import { openConnection } from '../../kit/http/raw-http.ts'
import { withinDeadline, waitFor } from '../../kit/wait-for.ts'

const run = promisify(execFile)
const SETUP_MS_MAX = 400_000 // includes the download of Envoy
const VALIDATE_MS_MAX = 30_000
const PROBE_MS_MAX = 2000
const OVERLOAD_MS_MAX = 60_000 // longer than its two waits
/** They use more than 64 MiB. */
const UNFINISHED = { connections: 5000, everyMs: 1 }

let pod: Pod
let folder = ''

beforeAll(async () => {
  await findEnvoy()
  pod = await startPod()
  folder = await mkdtemp(join(tmpdir(), 'curtail-listeners-'))
}, SETUP_MS_MAX)

afterAll(async () => {
  pod.close()
  await rm(folder, { recursive: true })
})

describe('Envoy accepts the bootstrap with', () => {
  const pods = [1, 2].map((at) => ({ host: `pods-${String(at)}.test`, port: 8080 }))
  test.each<Partial<EdgeSettings>>([
    {},
    { tls: true },
    { proxyProtocol: true, tls: true },
    { trustedHops: 0, listenAddress: '0.0.0.0' },
    { trustedHops: 1, failClosed: true },
    { accessLogPath: '', baseUrl: '', tracingHost: 'collector', listenAddress: '127.0.0.1' },
  ])('%j', async (settings) => {
    const all = {
      baseUrl: BASE_URL,
      redirectEndpoints: pods,
      createEndpoints: pods,
      limiterEndpoints: pods,
      accessLogPath: join(folder, 'access.log'), // Envoy opens both files even to validate
      certificatePath: join(folder, 'certificate.yaml'),
      ...settings,
    }
    const path = join(folder, 'validated.yaml')
    await writeFile(path, renderBootstrap(all))
    await writeFile(all.certificatePath, renderCertificate(all))
    const args = ['--mode', 'validate', '--config-path', path, '--log-level', 'error']
    const { stdout, stderr } = await run(await findEnvoy(), args, { timeout: VALIDATE_MS_MAX })
    expect(stdout + stderr).toMatch(/OK/)
  })
})

describe('the TLS listener', () => {
  const authority = createAuthority('edge-test')
  let certificates = ''
  let edge: Edge

  /** Writes a certificate as Kubernetes does: into a folder to which a symlink is then swapped. */
  const writeCertificate = async (name: string) => {
    const { cert, key } = authority.issue(['edge.test', `${name}.test`])
    await mkdir(join(certificates, name))
    await writeFile(join(certificates, name, 'tls.crt'), cert)
    await writeFile(join(certificates, name, 'tls.key'), key)
    await symlink(name, join(certificates, '..next'))
    await rename(join(certificates, '..next'), join(certificates, '..data'))
  }

  beforeAll(async () => {
    certificates = join(folder, 'certificates')
    await mkdir(certificates)
    await writeCertificate('first')
    for (const name of ['tls.crt', 'tls.key']) {
      await symlink(join('..data', name), join(certificates, name))
    }
    edge = await startEdge({
      podPort: pod.port,
      limiterPorts: [await freePort()],
      settings: { tls: true, certificateFolder: certificates },
    })
  })

  afterAll(async () => {
    await edge.stop()
  })

  const connectClient = (): Promise<TLSSocket> =>
    new Promise((resolve, reject) => {
      const names = { host: '127.0.0.1', servername: 'edge.test', ca: authority.cert }
      const options = { ...names, port: edge.httpsPort, ALPNProtocols: ['http/1.1'] }
      const socket = connectTls(options, () => {
        resolve(socket)
      })
      socket.once('error', reject)
    })
  const nameOf = (socket: TLSSocket) => socket.getPeerCertificate().subjectaltname ?? ''
  const statusLineOver = async (socket: TLSSocket) => {
    const statusLine = new Promise<string>((resolve) => {
      socket.once('data', (data: Buffer) => {
        resolve(data.toString('latin1').slice(0, 12))
      })
    })
    socket.write('GET /a HTTP/1.1\r\nHost: edge.test\r\n\r\n')
    return withinDeadline('a response over TLS', statusLine)
  }

  test('replaces its certificate under load, and no handshake fails', async () => {
    const held = await connectClient()
    expect(await statusLineOver(held)).toBe('HTTP/1.1 302')
    let isStopping = false
    let handshakes = 0
    const names = new Set<string>()
    const load = Array.from({ length: 4 }, async () => {
      while (!isStopping) {
        const socket = await connectClient()
        names.add(nameOf(socket))
        expect(await statusLineOver(socket)).toBe('HTTP/1.1 302')
        socket.destroy()
        handshakes++
      }
    })
    const loaded = Promise.all(load)
    await waitFor('some load', () => handshakes > 20)
    for (const name of ['second', 'third']) {
      await writeCertificate(name)
      await waitFor(`the ${name}`, () => [...names].some((one) => one.includes(name)))
    }
    isStopping = true
    await loaded
    expect(await statusLineOver(held)).toBe('HTTP/1.1 302') // open connections stay open
    expect(nameOf(held)).toContain('first')
    held.destroy()
  })

  test('negotiates and serves HTTP/2', async () => {
    const session = connectHttp2(`https://127.0.0.1:${edge.httpsPort}`, {
      ca: authority.cert,
      servername: 'edge.test',
    })
    const stream = session.request({ ':path': '/a', ':authority': 'edge.test' })
    const status = new Promise<unknown>((resolve, reject) => {
      stream.once('response', (headers) => {
        resolve(headers[':status'])
      })
      session.once('error', reject)
    })
    expect(await withinDeadline('a response over HTTP/2', status)).toBe(302)
    expect(session.alpnProtocol).toBe('h2')
    session.destroy()
  })
})

test('the edge reads the client address from the PROXY protocol, and requires it', async () => {
  const edge = await startEdge({
    podPort: pod.port,
    limiterPorts: [await freePort()],
    settings: { proxyProtocol: true, trustedHops: 0 },
  })
  const connection = await openConnection(edge.port)
  connection.send('PROXY TCP4 192.0.2.99 192.0.2.1 4000 80\r\n')
  const headers = { 'X-Forwarded-For': '6.6.6.6' }
  expect((await connection.exchange({ path: '/proxied', headers })).status).toBe(302)
  connection.close()
  await waitFor('the access log', async () => (await edge.log()).length === 1)
  expect(await edge.log()).toMatchObject([{ client: '192.0.2.99', path: '/proxied' }])
  const bare = await openConnection(edge.port)
  await expect(bare.exchange({ path: '/bare' })).rejects.toThrow(/closed/)
  await edge.stop()
})

test(
  'an edge that is out of memory refuses connections, and responds to probes',
  async () => {
    const edge = await startEdge({
      podPort: pod.port,
      limiterPorts: [await freePort()],
      settings: { heapBytesMax: 64 * 1024 * 1024 },
    })
    const stopRequests = openUnfinishedRequests({ host: '127.0.0.1', port: edge.port }, UNFINISHED)
    const get = async (path: string) => {
      const signal = AbortSignal.timeout(PROBE_MS_MAX)
      const response = await fetch(edge.metricsUrl + path, { signal })
      return { status: response.status, text: await response.text() }
    }
    const isOverloaded = async () =>
      (await get('/stats/prometheus')).text.includes('stop_accepting_connections_active{} 1')
    const orTimeout = (probe: Promise<boolean>) => probe.catch(() => false) // on a busy machine
    await waitFor('the edge to be overloaded', () => orTimeout(isOverloaded()))
    const isReady = async () => (await get('/ready')).status === 200
    await waitFor('the response to a probe', () => orTimeout(isReady()))
    stopRequests()
    const isServing = () =>
      edge.send({ path: '/a' }).then(
        ({ status }) => status === 302,
        () => false, // closed immediately
      )
    await waitFor('the edge to recover', isServing)
    await edge.stop()
  },
  OVERLOAD_MS_MAX,
)
