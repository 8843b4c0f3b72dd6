// How clients reach a real Envoy with the product's bootstrap: TLS with HTTP/2 and HTTP/1.1, whose
// certificate is replaced under load, and PROXY protocol; and that every rendering is one it takes.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { connect as connectHttp2 } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { EdgeSettings } from '../../envoy/edge-settings.ts'
import { renderBootstrap, renderCertificate } from '../../envoy/render-bootstrap.ts'
import { findEnvoy } from '../parts/envoy.ts'
import { freePort } from '../parts/free-ports.ts'
import { gatherCrowd } from './crowd.ts'
import { BASE_URL, type Edge, type Pod, startEdge, startPod } from './edge.ts'
import { createAuthority } from './grpc-certificates.ts'
import { openConnection } from './raw-http.ts'
import { inTime, waitFor } from './wait-for.ts'

const run = promisify(execFile)
const SETUP_MS_MAX = 400_000 // Envoy may have to be fetched
const VALIDATE_MS_MAX = 30_000
const PROBE_MS_MAX = 2000
const OVERLOAD_MS_MAX = 60_000 // longer than its two waits
/** More than 64 MiB hold. */
const CROWD = { connections: 5000, everyMs: 1 }

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

describe('renderings that Envoy takes', () => {
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
      accessLogPath: join(folder, 'access.log'), // Envoy opens both here too
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

describe('TLS', () => {
  const authority = createAuthority('edge-test')
  let certificates = ''
  let edge: Edge

  /** Lays a certificate down as Kubernetes does: a folder, and a link that is swapped. */
  const lay = async (name: string) => {
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
    await lay('first')
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

  const shake = (): Promise<TLSSocket> =>
    new Promise((resolve, reject) => {
      const names = { host: '127.0.0.1', servername: 'edge.test', ca: authority.cert }
      const options = { ...names, port: edge.httpsPort, ALPNProtocols: ['http/1.1'] }
      const socket = connectTls(options, () => {
        resolve(socket)
      })
      socket.once('error', reject)
    })
  const nameOf = (socket: TLSSocket) => socket.getPeerCertificate().subjectaltname ?? ''
  const follow = async (socket: TLSSocket) => {
    const answered = new Promise<string>((resolve) => {
      socket.once('data', (data: Buffer) => {
        resolve(data.toString('latin1').slice(0, 12))
      })
    })
    socket.write('GET /a HTTP/1.1\r\nHost: edge.test\r\n\r\n')
    return inTime('an answer over TLS', answered)
  }

  test('a certificate is replaced under load, and no handshake fails', async () => {
    const held = await shake()
    expect(await follow(held)).toBe('HTTP/1.1 302')
    let ends = false
    let shaken = 0
    const names = new Set<string>()
    const load = Array.from({ length: 4 }, async () => {
      while (!ends) {
        const socket = await shake()
        names.add(nameOf(socket))
        expect(await follow(socket)).toBe('HTTP/1.1 302')
        socket.destroy()
        shaken++
      }
    })
    const loaded = Promise.all(load)
    await waitFor('some load', () => shaken > 20)
    for (const name of ['second', 'third']) {
      await lay(name)
      await waitFor(`the ${name}`, () => [...names].some((one) => one.includes(name)))
    }
    ends = true
    await loaded
    expect(await follow(held)).toBe('HTTP/1.1 302') // what is open goes on
    expect(nameOf(held)).toContain('first')
    held.destroy()
  })

  test('HTTP/2 is offered, and served', async () => {
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
    expect(await inTime('an answer over HTTP/2', status)).toBe(302)
    expect(session.alpnProtocol).toBe('h2')
    session.destroy()
  })
})

test('PROXY protocol tells who the client is; who does not speak it is not heard', async () => {
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
  await waitFor('the log', async () => (await edge.log()).length === 1)
  expect(await edge.log()).toMatchObject([{ client: '192.0.2.99', path: '/proxied' }])
  const bare = await openConnection(edge.port)
  await expect(bare.exchange({ path: '/bare' })).rejects.toThrow(/closed/)
  await edge.stop()
})

test(
  'an edge that is out of memory refuses clients, and still says so to probes',
  async () => {
    const edge = await startEdge({
      podPort: pod.port,
      limiterPorts: [await freePort()],
      settings: { heapBytesMax: 64 * 1024 * 1024 },
    })
    const leave = gatherCrowd({ host: '127.0.0.1', port: edge.port }, CROWD)
    const asked = async (path: string) => {
      const signal = AbortSignal.timeout(PROBE_MS_MAX)
      const answer = await fetch(edge.metricsUrl + path, { signal })
      return { status: answer.status, text: await answer.text() }
    }
    const isOverloaded = async () =>
      (await asked('/stats/prometheus')).text.includes('stop_accepting_connections_active{} 1')
    const orLate = (asking: Promise<boolean>) => asking.catch(() => false) // on a busy machine
    await waitFor('the edge to be overloaded', () => orLate(isOverloaded()))
    const isReady = async () => (await asked('/ready')).status === 200
    await waitFor('the answer to a probe', () => orLate(isReady()))
    leave()
    const isServing = () =>
      edge.ask({ path: '/a' }).then(
        ({ status }) => status === 302,
        () => false, // closed at once
      )
    await waitFor('the edge to serve again', isServing)
    await edge.stop()
  },
  OVERLOAD_MS_MAX,
)
