// One stack of the reference's integration tests: Redis, a statsd exporter, the service and two
// Envoys. Started by run-in-stack.ts in a network, mount and process namespace of its own, whose
// end takes everything with it. Prepares that namespace, runs the commands, says what came of them.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type RunningEnvoy, startEnvoy } from '../dependencies/envoy.ts'
import { clientOf, startRedis } from '../dependencies/redis.ts'
import { waitFor } from '../kit/wait-for.ts'
import type { Ended, StackReport, StackTask } from './stack-task.ts'
import { canConnect } from '../dependencies/can-connect.ts'

const START_MS_MAX = 60_000
const STOP_MS_MAX = 15_000
const ASK_MS_MAX = 2000
/** Calls that the service must have answered before it counts as warm: first ones may be late. */
const WARM_CALLS = 20
const OUTPUT_CHARACTERS_MAX = 4000

const ports = { redis: 6379, exporter: 9102, grpc: 8081, proxy: 8888, mockAdmin: 8002 } as const

/** A process of the stack. */
interface Part {
  readonly name: string
  /** How it exited; undefined while it runs. */
  how(): string | undefined
  readonly ended: Promise<void>
  kill(signal: NodeJS.Signals): void
}

function say(report: StackReport): Promise<void> {
  return new Promise((resolve) => {
    process.send?.(report, () => {
      resolve()
    })
  })
}

function must(command: string, ...args: readonly string[]): void {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' })
  if (status === 0) return
  throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr.trim()}`)
}

function startPart(name: string, task: StackTask, argv: readonly string[]): Part {
  const log = openSync(join(task.folder, `${name}.log`), 'a')
  const env = { PATH: process.env['PATH'], ...(name === 'service' ? task.serviceEnv : {}) }
  const [command = '', ...args] = argv
  const child = spawn(command, args, { cwd: task.cwd, env, stdio: ['ignore', log, log] })
  let how: string | undefined
  const ended = new Promise<void>((resolve) => {
    child.on('error', (error) => {
      how = error.message
      resolve()
    })
    child.on('exit', (code, signal) => {
      how = code === null ? `by ${String(signal)}` : `with exit code ${code}`
      resolve()
    })
  })
  const kill = (signal: NodeJS.Signals) => void child.kill(signal)
  return { name, ended, kill, how: () => how }
}

async function untilListening(part: Part, port: number): Promise<void> {
  const listens = async () => {
    if (part.how() !== undefined) throw new Error(`the ${part.name} ended ${part.how()}`)
    return canConnect(port)
  }
  await waitFor(`the ${part.name} to listen on port ${port}`, listens, START_MS_MAX)
}

/** Waits until the service responded through Envoy often enough; Envoy admits on a time-out. */
async function warmUp(service: Part): Promise<void> {
  let answered = 0
  const isWarm = async () => {
    if (service.how() !== undefined) throw new Error(`the service ended ${service.how()}`)
    const headers = { foo: `warm-up-${Math.random()}` }
    const signal = AbortSignal.timeout(ASK_MS_MAX)
    const isCounted = await fetch(`http://127.0.0.1:${ports.proxy}/header`, {
      headers,
      signal,
    }).then(
      (answer) => answer.headers.has('x-ratelimit-limit'),
      () => false,
    )
    if (isCounted) answered++
    return answered >= WARM_CALLS
  }
  await waitFor('answers of the service through Envoy', isWarm, START_MS_MAX)
}

async function startAll(task: StackTask): Promise<{ service: Part; proxy: RunningEnvoy }> {
  must('ip', 'link', 'set', 'lo', 'up')
  must('mount', '--bind', task.hostsFile, '/etc/hosts')
  must('mount', '--bind', task.resolverFile, '/etc/resolv.conf')
  await startRedis([], { port: ports.redis })
  const mapping = join(task.reference, 'examples/prom-statsd-exporter/conf.yaml')
  const exporter = startPart('exporter', task, [
    task.statsdExporter,
    `--statsd.mapping-config=${mapping}`,
  ])
  await untilListening(exporter, ports.exporter)
  const service = startPart('service', task, task.service)
  await untilListening(service, ports.grpc)
  const envoyOf = (name: 'mock' | 'proxy', configYaml?: string) =>
    startEnvoy({
      path: task.envoy,
      configPath: join(task.reference, `examples/envoy/${name}.yaml`),
      ...(configYaml === undefined ? {} : { configYaml }),
      args: ['--service-node', name, '--service-cluster', name, '--log-level', 'info'],
    })
  // Both have their admin on 8001; here they share one loopback.
  const admin = `{address: {socket_address: {address: 127.0.0.1, port_value: ${ports.mockAdmin}}}}`
  await envoyOf('mock', `admin: ${admin}`)
  const proxy = await envoyOf('proxy')
  await warmUp(service)
  return { service, proxy }
}

function runCommand(task: StackTask, argv: readonly string[]): Promise<Ended> {
  const startedMs = performance.now()
  const [command = '', ...args] = argv
  const env = { PATH: process.env['PATH'] }
  const limits = { timeout: task.commandMsMax, killSignal: 'SIGKILL' } as const
  const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'], ...limits })
  let output = ''
  const take = (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-OUTPUT_CHARACTERS_MAX)
  }
  child.stdout.on('data', take)
  child.stderr.on('data', take)
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => {
      const exitCode = code ?? `ended by ${String(signal)}`
      resolve({ exitCode, output, ms: Math.round(performance.now() - startedMs) })
    })
  })
}

/** Stops the service like an operator, and returns how that went. */
async function stopService(service: Part): Promise<string> {
  if (service.how() !== undefined) return `ended ${service.how()} before it was told to`
  const startedMs = performance.now()
  service.kill('SIGTERM')
  const forced = setTimeout(() => {
    service.kill('SIGKILL')
  }, STOP_MS_MAX)
  await service.ended
  clearTimeout(forced)
  const ms = Math.round(performance.now() - startedMs)
  return `stopped ${service.how() ?? '?'} ${ms} ms after SIGTERM`
}

/** Successful counting commands in Redis: those with which a limiter counts hits. */
async function countCharges(): Promise<number> {
  const client = clientOf(ports.redis)
  try {
    const commands = /^cmdstat_(?:incrby|eval|evalsha):calls=(\d+),.*failed_calls=(\d+)/gm
    const found = [...(await client.info('commandstats')).matchAll(commands)]
    return found.reduce((sum, [, calls, failed]) => sum + Number(calls) - Number(failed), 0)
  } finally {
    client.disconnect()
  }
}

async function runStack(task: StackTask): Promise<void> {
  const { service, proxy } = await startAll(task)
  const go = new Promise((resolve) => process.once('message', resolve))
  await say({ kind: 'ready' })
  await go
  const lateBefore = await proxy.stat('ratelimit\\.error$')
  const chargesBefore = await countCharges()
  const ended: Ended[] = []
  for (const argv of task.commands) ended.push(await runCommand(task, argv))
  const callsOverDeadline = (await proxy.stat('ratelimit\\.error$')) - lateBefore
  const charges = (await countCharges()) - chargesBefore
  const isAlive = service.how() === undefined
  const stopped = await stopService(service)
  await say({ kind: 'done', ended, callsOverDeadline, charges, isAlive, stopped })
}

function readLog(file: string): string {
  if (!existsSync(file)) return 'the service was not started'
  return readFileSync(file, 'utf8').slice(-OUTPUT_CHARACTERS_MAX)
}

async function main(task: StackTask): Promise<void> {
  process.env['TMPDIR'] = task.folder // for the namespace ends without tidying up
  try {
    await runStack(task)
  } catch (error) {
    const log = readLog(join(task.folder, 'service.log'))
    const why = error instanceof Error ? error.message : String(error)
    await say({ kind: 'failed', why: `${why}\n${log}` })
  }
  process.exit() // and with it the namespace of every process here
}

process.on('disconnect', () => process.exit(1))
process.once('message', (task: StackTask) => void main(task))
