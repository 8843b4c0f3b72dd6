// What every process that serves public HTTP shares: a log, metrics, health, the public and the
// admin port, and an ordered shutdown. Independent of routes and stores.
import { openProcess, type Process } from '../process/open-process.ts'
import { type Stop, stopInTurn } from '../process/stop.ts'
import { type Listener, listen } from './serve.ts'

/** A starting process: its ports are open, but no handler is attached yet. */
export interface Service extends Omit<Process, 'cleanups'> {
  readonly publicHttp: Listener
  readonly adminHttp: Listener
  /** Aborts before the steps of `onStop`. */
  readonly signal: AbortSignal
  /** Counts and logs the failures of a background task. */
  readonly onTaskError: (task: string) => (error: unknown) => void
  /** Adds a step to run once the ports have drained; the last one added runs first. */
  onStop(stop: Stop): void
  /** Marks the process ready, and logs that with these fields. */
  ready(fields: Readonly<Record<string, unknown>>): void
  /** Calls `ready` without fields once `dependency` resolves; if it rejects, the process exits. */
  readyAfter(dependency: Promise<unknown>): void
  /** Drains the ports, then runs the steps of `onStop`. */
  readonly stop: Stop
}

/** What to open. */
interface ServiceOptions {
  readonly role: string
  readonly config: {
    readonly PORT: number
    readonly ADMIN_PORT: number
    readonly LOG_LEVEL: string
  }
  /** @default every address */
  readonly adminHost?: string
  /** The dependencies that `/readyz` reports. */
  readonly dependencies: readonly string[]
}

/**
 * Both ports drain within this time. The admin port drains last, so that `/readyz` reports the
 * drain, and a change of a link, which takes more than a second, can complete. The rest of the 7 s
 * of a stop (../process/stop.ts) is for the steps of `onStop`.
 */
const DRAINS_MS_MAX = 4000
const ADMIN_DRAIN_MS_MIN = 500

/** Opens the ports. Throws OperatorError. */
export async function openService(options: ServiceOptions): Promise<Service> {
  const { role, config, adminHost } = options
  const { log, metrics, health, cleanups } = openProcess(role, config, options.dependencies)
  const onError = (err: unknown) => {
    log.error({ err }, 'connection not accepted')
  }
  const publicHttp = await listen({ port: config.PORT, setting: 'PORT', onError })
  const adminAt = {
    port: config.ADMIN_PORT,
    ...(adminHost !== undefined && { host: adminHost }),
    setting: 'ADMIN_PORT',
    onError,
  }
  const adminHttp = await listen(adminAt).catch(async (error: unknown) => {
    await publicHttp.drain()
    throw error
  })
  const ports = { port: publicHttp.port, adminPort: adminHttp.port }
  const stopping = new AbortController()
  let isStopping = false
  let wasReady = false
  const ready = (fields: Readonly<Record<string, unknown>>) => {
    wasReady = true
    health.markReady()
    log.info({ ...ports, ...fields }, 'ready')
  }
  log.debug(ports, 'listening')
  return {
    log,
    metrics,
    health,
    publicHttp,
    adminHttp,
    signal: stopping.signal,
    onTaskError: (task) => (err) => {
      metrics.backgroundFailures.inc({ task })
      log.error({ err, task }, 'background task failed')
    },
    onStop: (stop) => cleanups.push(stop),
    ready,
    readyAfter(dependency) {
      dependency.then(
        () => {
          if (!isStopping) ready({})
        },
        (err: unknown) => {
          log.fatal({ err }, 'required dependency unusable: exiting')
          process.exit(1)
        },
      )
    },
    async stop() {
      isStopping = true
      health.markDraining()
      if (wasReady) log.info('draining')
      const deadlineMs = performance.now() + DRAINS_MS_MAX
      const drainAdmin = () =>
        adminHttp.drain(Math.max(ADMIN_DRAIN_MS_MIN, deadlineMs - performance.now()))
      const abort = () => {
        stopping.abort()
        return Promise.resolve()
      }
      await stopInTurn([() => publicHttp.drain(), drainAdmin, abort, ...cleanups.toReversed()])
      if (wasReady) log.info('stopped')
    },
  }
}
