// The stop of the `ratelimit` role, in this process: the role stops every component even if one
// fails to stop, and throws the error of that component.
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals'
import type { GrpcServeDeps } from '../../../src/grpc/serve.ts'
import { freePort } from '../../dependencies/free-ports.ts'
import { canConnect } from '../../dependencies/can-connect.ts'
import { limiterEnvironment } from '../../stack/limiter-environment.ts'

const TEST_MS_MAX = 180_000
const real = await import('../../../src/grpc/serve.ts')
let grpcPort = 0
jest.unstable_mockModule('../../../src/grpc/serve.ts', () => ({
  async serveGrpc(deps: GrpcServeDeps) {
    const server = await real.serveGrpc(deps)
    grpcPort = server.port
    const close = async () => {
      await server.close()
      throw new Error('gRPC cannot stop')
    }
    return { ...server, close }
  },
}))
let redisClosed = 0
const { connectRedis } = await import('../../../src/stores/redis/connection.ts')
jest.unstable_mockModule('../../../src/stores/redis/connection.ts', () => ({
  connectRedis(...args: Parameters<typeof connectRedis>) {
    const connection = connectRedis(...args)
    const close = () => {
      redisClosed++
      connection.close()
    }
    return { ...connection, close }
  },
}))
const { role } = await import('../../../src/roles/ratelimit.ts')

let root: string
let redisPort: number
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'curtail-stop-'))
  await mkdir(join(root, 'config'))
  await writeFile(join(root, 'config', 'rules.yaml'), 'domain: shop\ndescriptors: []\n')
  redisPort = await freePort()
})
afterAll(async () => {
  await rm(root, { recursive: true })
})

const start = (env: Record<string, string> = {}) =>
  role.start({
    env: {
      LOG_LEVEL: 'error',
      ...limiterEnvironment(root, redisPort),
      ...env,
    },
    args: [],
    signal: new AbortController().signal,
  })

test(
  'the role stops every component although one cannot stop, and throws its error',
  async () => {
    const started = await start()
    if (!('stop' in started)) throw new Error('the role did not start')
    expect(await canConnect(grpcPort)).toBe(true)
    await expect(started.stop()).rejects.toThrow('gRPC cannot stop')
    expect(await canConnect(grpcPort)).toBe(false)
    expect(redisClosed).toBe(1)
    expect(process.listenerCount('SIGHUP')).toBe(0)
  },
  TEST_MS_MAX,
)

test(
  'the role throws the cause of a failed start, even if a component then cannot stop',
  async () => {
    const occupant = createServer().listen(0)
    await once(occupant, 'listening')
    const { port } = occupant.address() as AddressInfo
    await expect(start({ ADMIN_PORT: String(port) })).rejects.toThrow('ADMIN_PORT')
    expect([redisClosed, await canConnect(grpcPort)]).toEqual([2, false])
    occupant.close()
  },
  TEST_MS_MAX,
)
