// The trial of docs/drop-in.md as printed: a plain Envoy with the configuration of the document is
// limited by the role that its command starts. Only the ports and the folder differ.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { findEnvoy, startEnvoy } from '../../dependencies/envoy.ts'
import { freePort } from '../../dependencies/free-ports.ts'
import { startRedis } from '../../dependencies/redis.ts'
import { type Pod, startPod } from '../../kit/edge/edge.ts'
import { waitFor } from '../../kit/wait-for.ts'

const run = promisify(execFile)
const SETUP_MS_MAX = 400_000 // includes the download of dependencies
const START_MS_MAX = 60_000
const CURL_MS_MAX = 10_000

const cleanups: (() => unknown)[] = []
let pod: Pod
let curl: string

beforeAll(async () => {
  const page = await readFile('docs/drop-in.md', 'utf8')
  const blocks = (language: string) =>
    [...page.matchAll(RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'gms'))].map(
      ([, text = '']) => text,
    )
  const [rules = '', envoyConfig = ''] = blocks('yaml')
  const [limiterLine = '', envoyLine = '', curlLine = ''] = (blocks('sh')[0] ?? '').split('\n')

  const folder = await mkdtemp(join(tmpdir(), 'curtail-limits-'))
  cleanups.push(() => rm(folder, { recursive: true }))
  await mkdir(join(folder, 'config'))
  await writeFile(join(folder, 'config', 'rules.yaml'), rules)
  pod = await startPod()
  cleanups.push(() => {
    pod.close()
  })
  const redis = await startRedis()
  cleanups.push(() => redis.close())
  const [grpcPort, edgePort] = [await freePort(), await freePort()]
  const ours: Readonly<Record<string, string>> = {
    '/tmp/limits': folder,
    6379: String(redis.port),
    8000: String(edgePort),
    8081: String(grpcPort),
    9000: String(pod.port),
  }
  const adapt = (text: string) =>
    text.replace(/\/tmp\/limits|\b(?:6379|8000|8081|9000)\b/g, (place) => ours[place] ?? place)
  await writeFile(join(folder, 'envoy.yaml'), adapt(envoyConfig))
  await startLimiter(adapt(limiterLine), grpcPort)

  expect(envoyLine).toBe('envoy -c /tmp/limits/envoy.yaml --disable-hot-restart')
  // The tests read Envoy's state from its admin port, which the document does not need.
  const address = { socket_address: { address: '127.0.0.1', port_value: 0 } }
  const envoy = await startEnvoy({
    path: await findEnvoy(),
    configPath: join(folder, 'envoy.yaml'),
    configYaml: JSON.stringify({ admin: { address } }),
  })
  cleanups.push(() => envoy.stop())
  curl = adapt(curlLine)
}, SETUP_MS_MAX)

afterAll(async () => {
  for (const cleanUp of cleanups.reverse()) await cleanUp()
})

/** Runs the document's command, and waits until the role is ready. */
async function startLimiter(line: string, grpcPort: number): Promise<void> {
  const ports = { PORT: '0', DEBUG_PORT: '0', ADMIN_PORT: '0', GRPC_PORT: String(grpcPort) }
  const loopback = { HOST: '127.0.0.1', GRPC_HOST: '127.0.0.1', DEBUG_HOST: '127.0.0.1' }
  // A pause of the machine does not change a count.
  const deadlines = { LIMIT_DEADLINE_MS: '5000', REDIS_TIMEOUT: '10s' }
  const child = spawn('sh', ['-ec', line], {
    env: { ...process.env, ...ports, ...loopback, ...deadlines },
    detached: true, // npx and the role are one process group
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  }
  const exited = once(child, 'close')
  cleanups.push(async () => {
    if (child.exitCode === null) process.kill(-(child.pid ?? 0), 'SIGTERM')
    await exited
  })
  const isReady = () => {
    if (child.exitCode !== null) throw new Error(output)
    return output.includes('"msg":"ready"') && output.includes('Redis available')
  }
  await waitFor('the limiter', isReady, START_MS_MAX)
}

/** The status and the headers that the document's command prints. */
async function request(): Promise<string> {
  const { stdout } = await run('sh', ['-ec', curl], { timeout: CURL_MS_MAX })
  return stdout
}

test('Envoy admits requests up to the limit, and denies the others', async () => {
  let denied = ''
  // Envoy admits a request if the limiter does not decide within Envoy's timeout of 20 ms.
  await waitFor('a denial', async () => {
    const admitted = pod.requests.length
    const response = await request()
    if (!response.startsWith('HTTP/1.1 429 ')) return false
    expect(pod.requests).toHaveLength(admitted)
    denied = response
    return true
  })
  expect(pod.requests.length).toBeGreaterThanOrEqual(3)
  expect(denied).toMatch(/^x-ratelimit-limit: 3\r$[^]*"rule":/im)
}, 60_000)
