// Starts the real `ratelimit` role for a test, on free ports, with rules in a temporary folder.
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { limiterEnvironment } from '../../stack/limiter-environment.ts'
import { createTestClient, type TestClient } from './grpc-client.ts'
import { type RoleProcess, startRole } from '../processes/role-process.ts'
import { waitFor } from '../wait-for.ts'

/** A limiter that is ready. */
export interface Limiter extends RoleProcess {
  readonly client: TestClient
  readonly grpcPort: number
  readonly url: string
  readonly debugUrl: string
  readonly adminUrl: string
  /** Writes a rules file, which the limiter reloads. */
  writeRules(text: string, name?: string): Promise<void>
  /** Calls ShouldRateLimit with these descriptors in the domain `shop`. */
  decide(...descriptors: readonly Descriptor[]): Promise<RateLimitReply>
}

/** A descriptor: its entries as one object, or the complete descriptor. */
type Descriptor = Readonly<Record<string, string>> | { readonly entries: readonly unknown[] }

/** A RateLimitResponse as protobufjs decodes it. */
export interface RateLimitReply {
  readonly overallCode: string
  readonly statuses: readonly {
    readonly code: string
    readonly limitRemaining: number
    readonly currentLimit: { readonly requestsPerUnit: number; readonly unit: string } | null
  }[]
  readonly responseHeadersToAdd: readonly { readonly key: string; readonly value: string }[]
  readonly rawBody: Buffer
  readonly dynamicMetadata: unknown
}

/** The rules and the environment of a limiter. */
interface LimiterOptions {
  readonly rules: string
  readonly redisPort: number
  readonly env?: Readonly<Record<string, string>>
  readonly nodeOptions?: readonly string[]
  readonly entryFile?: string
  readonly wrapper?: readonly string[]
}

/**
 * Starts a limiter whose counts are exact: Redis is available before the first call, and the
 * deadlines exceed a pause of the machine. A call that times out would be counted locally.
 */
export async function startExactLimiter(options: LimiterOptions): Promise<Limiter> {
  const env = { LIMIT_DEADLINE_MS: '5000', REDIS_TIMEOUT: '10s', ...options.env }
  const limiter = await startLimiter({ ...options, env })
  await waitFor('Redis to be available', () =>
    limiter.log.some(({ msg }) => msg === 'Redis available'),
  )
  return limiter
}

/** Starts a limiter. `redisPort` may be a port without a listener. */
export async function startLimiter(options: LimiterOptions): Promise<Limiter> {
  const root = await mkdtemp(join(tmpdir(), 'curtail-limiter-'))
  const folder = join(root, 'config')
  await mkdir(folder)
  /** Replaces the file: a write in place starts with an empty one, which would be reported. */
  const writeRules = async (text: string, name = 'rules.yaml') => {
    const next = join(root, `${name}.next`)
    await writeFile(next, text)
    await rename(next, join(folder, name))
  }
  await writeRules(options.rules)
  const running = await startRole({
    role: 'ratelimit',
    ...(options.nodeOptions !== undefined && { nodeOptions: options.nodeOptions }),
    ...(options.entryFile !== undefined && { entryFile: options.entryFile }),
    ...(options.wrapper !== undefined && { wrapper: options.wrapper }),
    env: { ...limiterEnvironment(root, options.redisPort), ...options.env },
  }).catch(async (error: unknown) => {
    await rm(root, { recursive: true })
    throw error
  })
  const { grpcPort, port, debugPort, adminPort } = running.ready as Record<string, number>
  const client = createTestClient(`127.0.0.1:${String(grpcPort)}`)
  const urlOf = (at: number | undefined) => `http://127.0.0.1:${String(at)}`
  return {
    ...running,
    client,
    grpcPort: Number(grpcPort),
    url: urlOf(port),
    debugUrl: urlOf(debugPort),
    adminUrl: urlOf(adminPort),
    writeRules,
    async decide(...descriptors) {
      const request = { domain: 'shop', descriptors: descriptors.map(descriptorOf) }
      return (await client.call(request)) as unknown as RateLimitReply
    },
    async stop() {
      client.close()
      await running.stop()
      await rm(root, { recursive: true })
    },
  }
}

function descriptorOf(descriptor: Descriptor): unknown {
  if (Array.isArray(descriptor.entries)) return descriptor
  return {
    entries: Object.entries(descriptor).map(([key, value]) => ({ key, value: String(value) })),
  }
}
