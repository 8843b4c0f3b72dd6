// The image in the place of envoyproxy/ratelimit's: with the command, settings, user, volumes and
// read-only root file system of the Deployment that Envoy Gateway renders. Only addresses differ,
// and the deadlines of Redis, so that a pause of the machine does not change a count.
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals'
import * as grpc from '@grpc/grpc-js'
import { stop as stopEsbuild } from 'esbuild'
import { freePort } from '../../dependencies/free-ports.ts'
import { type ImageRoot, openImage } from '../../dependencies/image-root.ts'
import { type RedisServer, startRedis } from '../../dependencies/redis.ts'
import {
  envoyGatewayContainer,
  envoyGatewayTracing,
  gatewayConfig,
  gatewayLabels,
  gatewayRequest,
} from '../../kit/ratelimit/envoy-gateway-deployment.ts'
import { createAuthority } from '../../kit/ratelimit/grpc-certificates.ts'
import { createTestClient, type TestClient } from '../../kit/ratelimit/grpc-client.ts'
import { type AdsServer, startAdsServer } from '../../kit/ratelimit/scripted-ads-server.ts'
import { waitFor, withinDeadline } from '../../kit/wait-for.ts'

const SETUP_MS_MAX = 400_000 // includes the installation of Redis
const TEST_MS_MAX = 180_000
const { command, user, env: environment, healthPath } = envoyGatewayContainer
const authority = createAuthority('authority of Envoy Gateway')
const rules = `
domain: shop
descriptors:
  - key: client
    rate_limit: { unit: hour, requests_per_unit: 1 }
`

let folder: string
let image: ImageRoot
let redis: RedisServer

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-drop-in-'))
  const { cert, key } = authority.issue(['envoy-ratelimit'])
  const files = {
    'certs/tls.crt': cert,
    'certs/tls.key': key,
    'certs/ca.crt': authority.cert,
    'rules/config.yaml': rules,
  }
  for (const name of ['certs', 'rules', 'statsd-exporter']) await mkdir(join(folder, name))
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  redis = await startRedis()
  image = await openImage()
}, SETUP_MS_MAX)

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp()
})

afterAll(async () => {
  await redis.close()
  await image.close()
  await rm(folder, { recursive: true })
})
// If esbuild's process runs when jest exits, Node.js can wait for it in an endless loop.
afterAll(stopEsbuild)

interface Started {
  readonly child: ChildProcess
  readonly output: () => string
  readonly exited: Promise<unknown>
}

/** Starts the container with the Deployment's command, and kills it after the test. */
function start(args: readonly string[], settings: Record<string, string>): Started {
  const at = (name: string) => join(folder, name)
  const volumes = {
    '/certs': at('certs'),
    '/etc/statsd-exporter': at('statsd-exporter'),
    '/data/ratelimit/config': at('rules'),
  }
  const child = image.start(args, settings, { command, user, volumes, hasTmp: false })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => (output += chunk.toString()))
  }
  const exited = once(child, 'close')
  cleanups.push(async () => {
    child.kill('SIGKILL')
    await exited
  })
  return { child, output: () => output, exited }
}

interface Service extends Started {
  readonly client: TestClient
  readonly metricsUrl: string
}

/** Starts the service, and waits until its readiness probe and its connection to Redis succeed. */
async function startService(settings: Record<string, string>): Promise<Service> {
  const [port, grpcPort, metricsPort] = [await freePort(), await freePort(), await freePort()]
  const started = start([], {
    ...environment,
    PORT: String(port),
    GRPC_PORT: String(grpcPort),
    DEBUG_PORT: '0',
    ADMIN_PORT: '0',
    PROMETHEUS_ADDR: `:${metricsPort}`,
    REDIS_URL: `127.0.0.1:${redis.port}`,
    REDIS_TIMEOUT: '10s',
    LIMIT_DEADLINE_MS: '5000',
    ...settings,
  })
  const isHealthy = async () => {
    if (started.child.exitCode !== null) throw new Error(started.output())
    return fetch(`http://127.0.0.1:${port}${healthPath}`).then(
      async (response) => response.status === 200 && (await response.text()) === 'OK',
      () => false, // not started
    )
  }
  await waitFor('the readiness probe', isHealthy)
  await waitFor('Redis', () => started.output().includes('Redis available'))
  // As Envoy Gateway configures Envoy: the CA is verified, and Envoy has no certificate.
  const credentials = grpc.credentials.createSsl(Buffer.from(authority.cert))
  const client = createTestClient(`127.0.0.1:${grpcPort}`, credentials, {
    'grpc.ssl_target_name_override': 'envoy-ratelimit',
  })
  cleanups.push(() => {
    client.close()
  })
  return { ...started, client, metricsUrl: `http://127.0.0.1:${metricsPort}/metrics` }
}

async function stop({ child, exited }: Started): Promise<void> {
  child.kill('SIGTERM')
  expect(await withinDeadline('the exit', exited)).toEqual([0, null])
}

/** An xDS server with a certificate for Envoy Gateway's Service; it requires one of its clients. */
async function startGateway(): Promise<AdsServer> {
  const { cert, key } = authority.issue(['envoy-gateway'])
  const pair = { cert_chain: Buffer.from(cert), private_key: Buffer.from(key) }
  const trusted = Buffer.from(authority.cert)
  const server = await startAdsServer({
    credentials: grpc.ServerCredentials.createSsl(trusted, [pair], true),
  })
  cleanups.push(() => {
    server.close()
  })
  return server
}

test(
  'serves health, calls over TLS and metrics; responses are those of envoyproxy/ratelimit',
  async () => {
    const gateway = await startGateway()
    const service = await startService({
      CONFIG_GRPC_XDS_SERVER_URL: `127.0.0.1:${gateway.port}`,
      CONFIG_GRPC_XDS_SERVER_TLS_SAN: 'envoy-gateway',
    })
    const commandLine = await readFile(`/proc/${String(service.child.pid)}/cmdline`, 'utf8')
    expect(commandLine).toContain('\0--max-old-space-size=192\0--max-semi-space-size=8\0')
    const nothingElse = { responseHeadersToAdd: [], dynamicMetadata: null }
    const call = () => service.client.call(gatewayRequest)
    expect(await call()).toMatchObject({ overallCode: 'OK', ...nothingElse })
    await waitFor('the stream', () => gateway.streams() === 1)
    const nonce = gateway.publish({ version: '1', configs: [gatewayConfig] })
    expect(await gateway.requestFor(nonce)).toMatchObject({ versionInfo: '1', errorDetail: null })
    expect(gateway.requests[0]?.node?.id).toBe('envoy-ratelimit')
    expect(await call()).toMatchObject({ overallCode: 'OK', ...nothingElse })
    const denied = await call()
    expect(denied).toMatchObject({ overallCode: 'OVER_LIMIT', ...nothingElse })
    expect(denied['rawBody']).toHaveLength(0)
    const metrics = await (await fetch(service.metricsUrl)).text()
    expect(metrics).toContain(`ratelimit_service_rate_limit_over_limit{${gatewayLabels},`)
    await stop(service)
    expect(service.output()).not.toMatch(/"level":"(warn|error|fatal)"|Warning/)
  },
  TEST_MS_MAX,
)

test(
  'traces calls with the settings of Envoy Gateway',
  async () => {
    const bodies: Buffer[] = []
    const collector = createServer((req, res) => {
      req.on('data', (chunk: Buffer) => bodies.push(chunk))
      req.on('end', () => res.writeHead(200, { 'Content-Type': 'application/x-protobuf' }).end())
    }).listen(0, '127.0.0.1')
    cleanups.push(() => {
      collector.closeAllConnections()
      collector.close()
    })
    await once(collector, 'listening')
    const { port } = collector.address() as AddressInfo
    const service = await startService({
      CONFIG_TYPE: 'FILE',
      ...envoyGatewayTracing,
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
    })
    const entries = [{ key: 'client', value: 'a' }]
    const traced = { domain: 'shop', descriptors: [{ entries }] }
    expect(await service.client.call(traced)).toMatchObject({ statuses: [{ limitRemaining: 0 }] })
    await stop(service) // exports the recorded spans
    // Protobuf contains strings unchanged.
    const exported = Buffer.concat(bodies).toString('latin1')
    expect(exported).toContain('RateLimitService/ShouldRateLimit')
    for (const [name, value] of Object.entries(envoyGatewayTracing)) {
      if (name.startsWith('TRACING_SERVICE_')) expect(exported).toContain(value)
    }
  },
  TEST_MS_MAX,
)

test(
  'passes its arguments to the role, also as an argument of the entry point',
  async () => {
    const run = async ({ exited, output }: Started) => {
      const [exitCode] = (await withinDeadline('the exit', exited)) as [number | null]
      return { exitCode, output: output() }
    }
    const help = { exitCode: 0, output: expect.stringContaining('Usage: curtail ratelimit\n') }
    expect(await run(start(['--help'], {}))).toEqual(help)
    const error = expect.stringContaining('ratelimit takes no arguments: "shop"')
    expect(await run(start(['shop'], {}))).toEqual({ exitCode: 2, output: error })
    // `command` of docker-compose does not replace the entry point.
    const child = image.start([...command, '--help'])
    let output = ''
    child.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()))
    await withinDeadline('the exit', once(child, 'close'))
    expect(output).toContain('Usage: curtail ratelimit\n')
  },
  TEST_MS_MAX,
)

test('the Dockerfile adds the same program, and sets the same options of Node.js', async () => {
  const dockerfile = await readFile(new URL('../../../Dockerfile', import.meta.url), 'utf8')
  const [, from = ''] = /^COPY --chmod=755 (\S+) \/bin\/ratelimit$/m.exec(dockerfile) ?? []
  const inImage = await readFile(join(image.folder, 'bin', 'ratelimit'), 'utf8')
  expect(await readFile(new URL(`../../../${from}`, import.meta.url), 'utf8')).toBe(inImage)
  const [, entryPoint = ''] = /^ENTRYPOINT (.*)$/m.exec(dockerfile) ?? []
  expect(JSON.parse(entryPoint)).toEqual(image.config.Entrypoint)
  const [, nodeOptions = ''] = /\bNODE_OPTIONS="([^"]*)"/.exec(dockerfile) ?? []
  expect(image.config.Env).toContain(`NODE_OPTIONS=${nodeOptions}`)
})
