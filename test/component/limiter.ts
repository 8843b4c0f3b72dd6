// Starts the real `ratelimit` role for a test, on free ports, with rules in a folder of its own.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { limiterEnvironment } from '../stack/limiter-environment.ts'
import { createTestClient, type TestClient } from './grpc-client.ts'
import { type RoleProcess, startRole } from './role-process.ts'
import { waitFor } from './wait-for.ts'

/** A limiter that is ready. */
export interface Limiter extends RoleProcess {
  readonly client: TestClient
  readonly grpcPort: number
  readonly url: string
  readonly debugUrl: string
  readonly adminUrl: string
  /** Writes a rules file; the limiter is to find it. */
  writeRules(text: string, name?: string): Promise<void>
  /** Asks about descriptors, each of one entry or several, in the domain `shop`. */
  ask(...descriptors: readonly Asked[]): Promise<Answered>
}

/** A descriptor: its entries, or with what else belongs to it. */
type Asked = Readonly<Record<string, string>> | { readonly entries: readonly unknown[] }

/** An answer as protobufjs reads it. */
export interface Answered {
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

/** How to start one. */
interface LimiterOptions {
  readonly rules: string
  readonly redisPort: number
  readonly env?: Readonly<Record<string, string>>
  readonly nodeOptions?: readonly string[]
  readonly wrapper?: readonly string[]
}

/**
 * Starts one whose counts are exact: Redis is there before the first call, and a machine that
 * pauses does not make it late, or else a call would be counted apart.
 */
export async function startExactLimiter(given: LimiterOptions): Promise<Limiter> {
  const env = { LIMIT_DEADLINE_MS: '5000', REDIS_TIMEOUT: '10s', ...given.env }
  const limiter = await startLimiter({ ...given, env })
  await waitFor('its Redis', () => limiter.log.some(({ msg }) => msg === 'Redis available'))
  return limiter
}

/** Starts it. `redisPort` may be one where nobody listens. */
export async function startLimiter(given: LimiterOptions): Promise<Limiter> {
  const root = await mkdtemp(join(tmpdir(), 'curtail-limiter-'))
  const folder = join(root, 'config')
  await mkdir(folder)
  const writeRules = (text: string, name = 'rules.yaml') => writeFile(join(folder, name), text)
  await writeRules(given.rules)
  const running = await startRole({
    role: 'ratelimit',
    ...(given.nodeOptions !== undefined && { nodeOptions: given.nodeOptions }),
    ...(given.wrapper !== undefined && { wrapper: given.wrapper }),
    env: { ...limiterEnvironment(root, given.redisPort), ...given.env },
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
    async ask(...descriptors) {
      const request = { domain: 'shop', descriptors: descriptors.map(descriptorOf) }
      return (await client.call(request)) as unknown as Answered
    },
    async stop() {
      client.close()
      await running.stop()
      await rm(root, { recursive: true })
    },
  }
}

function descriptorOf(asked: Asked): unknown {
  if (Array.isArray(asked.entries)) return asked
  return { entries: Object.entries(asked).map(([key, value]) => ({ key, value: String(value) })) }
}
