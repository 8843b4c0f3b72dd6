// One stack of the reference's integration tests: Redis, a statsd exporter, the service and two
// Envoys. run-in-stack.ts starts it in its own network, mount and process namespaces; when it
// exits, the kernel kills all its processes. It prepares the namespaces, runs the commands and
// reports their results.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type RunningEnvoy, startEnvoy } from '../dependencies/envoy.ts'
import { clientOf, startRedis } from '../dependencies/redis.ts'
import { waitFor } from '../kit/wait-for.ts'
import type { CommandResult, StackReport, StackTask } from './stack-task.ts'
import { canConnect } from '../dependencies/can-connect.ts'

const START_MS_MAX = 60_000
const STOP_MS_MAX = 15_000
const REQUEST_MS_MAX = 2000
/** Responses until the service counts as warm: the first calls may exceed their deadline. */
const WARM_CALLS = 20
const OUTPUT_CHARACTERS_MAX = 4000

const ports = { redis: 6379, exporter: 9102, grpc: 8081, proxy: 8888, mockAdmin: 8002 } as const

/** A process of the stack. */
interface StackProcess {
  readonly name: string
  /** The exit code, signal or start error; undefined while the process runs. */
  exitReason(): string | undefined
  readonly exited: Promise<void>
  kill(signal: NodeJS.Signals): void
}

function sendReport(report: StackReport): Promise<void> {
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

function startProcess(name: string, task: StackTask, argv: readonly string[]): StackProcess {
  const log = openSync(join(task.folder, `${name}.log`), 'a')
  const env = { PATH: process.env['PATH'], ...(name === 'service' ? task.serviceEnv : {}) }
  const [command = '', ...args] = argv
  const child = spawn(command, args, { cwd: task.cwd, env, stdio: ['ignore', log, log] })
  let exitReason: string | undefined
  const exited = new Promise<void>((resolve) => {
    child.on('error', (error) => {
      exitReason = error.message
      resolve()
    })
    child.on('exit', (code, signal) => {
      exitReason = code === null ? `signal ${String(signal)}` : `exit code ${code}`
      resolve()
    })
  })
  const kill = (signal: NodeJS.Signals) => void child.kill(signal)
  return { name, exited, kill, exitReason: () => exitReason }
}

async function untilListening(stackProcess: StackProcess, port: number): Promise<void> {
  const listens = async () => {
    if (stackProcess.exitReason() !== undefined)
      throw new Error(`the ${stackProcess.name} exited: ${stackProcess.exitReason()}`)
    return canConnect(port)
  }
  await waitFor(`the ${stackProcess.name} to listen on port ${port}`, listens, START_MS_MAX)
}

/** Waits for WARM_CALLS responses of the service through Envoy, which admits on a timeout. */
async function warmUp(service: StackProcess): Promise<void> {
  let responses = 0
  const isWarm = async () => {
    if (service.exitReason() !== undefined)
      throw new Error(`the service exited: ${service.exitReason()}`)
    const headers = { foo: `warm-up-${Math.random()}` }
    const signal = AbortSignal.timeout(REQUEST_MS_MAX)
    const isCounted = await fetch(`http://127.0.0.1:${ports.proxy}/header`, {
      headers,
      signal,
    }).then(
      (response) => response.headers.has('x-ratelimit-limit'),
      () => false,
    )
    if (isCounted) responses++
    return responses >= WARM_CALLS
  }
  await waitFor('responses of the service through Envoy', isWarm, START_MS_MAX)
}

async function startAll(task: StackTask): Promise<{ service: StackProcess; proxy: RunningEnvoy }> {
  must('ip', 'link', 'set', 'lo', 'up')
  must('mount', '--bind', task.hostsFile, '/etc/hosts')
  must('mount', '--bind', task.resolverFile, '/etc/resolv.conf')
  await startRedis([], { port: ports.redis })
  const mapping = join(task.reference, 'examples/prom-statsd-exporter/conf.yaml')
  const exporter = startProcess('exporter', task, [
    task.statsdExporter,
    `--statsd.mapping-config=${mapping}`,
  ])
  await untilListening(exporter, ports.exporter)
  const service = startProcess('service', task, task.service)
  await untilListening(service, ports.grpc)
  const envoyOf = (name: 'mock' | 'proxy', configYaml?: string) =>
    startEnvoy({
      path: task.envoy,
      configPath: join(task.reference, `examples/envoy/${name}.yaml`),
      ...(configYaml === undefined ? {} : { configYaml }),
      args: ['--service-node', name, '--service-cluster', name, '--log-level', 'info'],
    })
  // Both have their admin API on port 8001, but here they share one loopback interface.
  const admin = `{address: {socket_address: {address: 127.0.0.1, port_value: ${ports.mockAdmin}}}}`
  await envoyOf('mock', `admin: ${admin}`)
  const proxy = await envoyOf('proxy')
  await warmUp(service)
  return { service, proxy }
}

function runCommand(task: StackTask, argv: readonly string[]): Promise<CommandResult> {
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
      const exitCode = code ?? `killed by ${String(signal)}`
      resolve({ exitCode, output, ms: Math.round(performance.now() - startedMs) })
    })
  })
}

/** Stops the service with SIGTERM; returns its exit reason and the duration. */
async function stopService(service: StackProcess): Promise<string> {
  if (service.exitReason() !== undefined) return `exited before SIGTERM: ${service.exitReason()}`
  const startedMs = performance.now()
  service.kill('SIGTERM')
  const forced = setTimeout(() => {
    service.kill('SIGKILL')
  }, STOP_MS_MAX)
  await service.exited
  clearTimeout(forced)
  const ms = Math.round(performance.now() - startedMs)
  return `stopped ${ms} ms after SIGTERM: ${service.exitReason() ?? '?'}`
}

/** The successful Redis commands of the kinds with which a limiter counts hits. */
async function countHits(): Promise<number> {
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
  await sendReport({ kind: 'ready' })
  await go
  const timeoutsBefore = await proxy.stat('ratelimit\\.error$')
  const hitsBefore = await countHits()
  const commandResults: CommandResult[] = []
  for (const argv of task.commands) commandResults.push(await runCommand(task, argv))
  const callsTimedOut = (await proxy.stat('ratelimit\\.error$')) - timeoutsBefore
  const hits = (await countHits()) - hitsBefore
  const isAlive = service.exitReason() === undefined
  const stopped = await stopService(service)
  await sendReport({ kind: 'done', commandResults, callsTimedOut, hits, isAlive, stopped })
}

function readLog(file: string): string {
  if (!existsSync(file)) return 'the service was not started'
  return readFileSync(file, 'utf8').slice(-OUTPUT_CHARACTERS_MAX)
}

async function main(task: StackTask): Promise<void> {
  process.env['TMPDIR'] = task.folder // the kill of the namespace skips cleanup handlers
  try {
    await runStack(task)
  } catch (error) {
    const log = readLog(join(task.folder, 'service.log'))
    const reason = error instanceof Error ? error.message : String(error)
    await sendReport({ kind: 'failed', reason: `${reason}\n${log}` })
  }
  process.exit() // the kernel then kills every process of the namespace
}

process.on('disconnect', () => process.exit(1))
process.once('message', (task: StackTask) => void main(task))
