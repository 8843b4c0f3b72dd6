// Resident memory of the roles in the bundle of the image, with the options of the image and of the
// chart: idle, and of the limiter under load, beside the reference limiter.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type ImageProgram,
  imageVariables,
  writeImageProgram,
} from '../../test/kit/processes/image-program.ts'
import { startRole } from '../../test/kit/processes/role-process.ts'
import { startCassandraSetup } from './cassandra-setup.ts'
import { prepareCalls } from './drive-calls.ts'
import { onServerCore } from './pinning.ts'
import { type Memory, residentMbOf } from './process-figures.ts'
import { requestsOf } from './ratelimit-calls.ts'
import { startLimiter } from './ratelimit-server.ts'
import type { BenchOptions } from './report.ts'

/** The memory of a program in one state. */
export interface RoleMemory {
  readonly program: string
  readonly state: 'idle' | 'under load'
  readonly memory: Memory
  /** Undefined for the reference. */
  readonly goalMb: number | undefined
}

const IDLE_GOAL_MB = 100
const LIMITER_GOALS_MB = { idle: 110, 'under load': 150 }
/** The idle state is measured this long after the process is ready. */
const IDLE_MS = 30_000
const LOAD_MS = 20_000
const IN_FLIGHT = 64
const CONNECTIONS = 4
/** More than the create pod claims at its start. */
const CODES = 20_000

type Stops = (() => Promise<void>)[]

/** Measures all roles. Needs REFERENCE_RATELIMIT for the figures of the reference. */
export async function measureRoles({ log }: BenchOptions): Promise<readonly RoleMemory[]> {
  const folder = await mkdtemp(join(tmpdir(), 'curtail-bench-'))
  const stops: Stops = [() => rm(folder, { recursive: true })]
  try {
    const image = await writeImageProgram(join(folder, 'app'))
    const limiter = [
      process.execPath,
      ...image.optionsOf('ratelimit'),
      image.entryFile,
      'ratelimit',
    ]
    const figures = await measureLimiter('ratelimit', limiter, LIMITER_GOALS_MB)
    const reference = process.env['REFERENCE_RATELIMIT'] ?? ''
    if (reference !== '') figures.push(...(await measureLimiter('Go', [reference])))
    const local = { PORT: '0', ADMIN_PORT: '0', DATA_DIR: join(folder, 'data') }
    figures.push(await measureIdle('standalone', image, local))
    const { env } = await startCassandraSetup(stops, { codes: CODES })
    for (const role of ['redirect', 'create']) figures.push(await measureIdle(role, image, env))
    for (const { program, state, memory } of figures)
      log(`${program} ${state}: ${memory.nowMb.toFixed(0)} MB`)
    return figures
  } finally {
    for (const stop of stops) await stop()
  }
}

async function measureIdle(
  role: string,
  image: ImageProgram,
  env: Readonly<Record<string, string>>,
): Promise<RoleMemory> {
  const running = await startRole({
    role,
    entryFile: image.entryFile,
    nodeOptions: role === 'standalone' ? [] : image.optionsOf(role),
    wrapper: onServerCore,
    env: { ...env, ...imageVariables },
  })
  try {
    await sleep(IDLE_MS)
    const memory = residentMbOf(running.pid)
    return { program: role, state: 'idle', memory, goalMb: IDLE_GOAL_MB }
  } finally {
    await running.stop()
  }
}

async function measureLimiter(
  program: string,
  argv: readonly string[],
  goalsMb?: Readonly<Record<RoleMemory['state'], number>>,
): Promise<RoleMemory[]> {
  const server = await startLimiter(argv, { localCacheBytes: 0, env: imageVariables })
  try {
    await sleep(IDLE_MS)
    const idle = residentMbOf(server.pid)
    const driver = await prepareCalls({
      port: server.port,
      connections: CONNECTIONS,
      inFlight: IN_FLIGHT,
      requests: requestsOf('three'),
      msMax: LOAD_MS,
    })
    await driver.run()
    const loaded = residentMbOf(server.pid)
    return [
      { program, state: 'idle', memory: idle, goalMb: goalsMb?.idle },
      { program, state: 'under load', memory: loaded, goalMb: goalsMb?.['under load'] },
    ]
  } finally {
    await server.stop()
  }
}
