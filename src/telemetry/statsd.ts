// Sends metrics to a statsd server over TCP every few seconds, counters as increments. While the
// server is unavailable, nothing is queued: the next increment includes the unsent ones. Never
// throws or blocks.
import { connect, type Socket } from 'node:net'
import { runInBackground } from '../resilience/background.ts'
import { within } from '../resilience/deadline.ts'
import type { Log } from './log.ts'

/** Durations in milliseconds, of which the most recent are available. */
interface TimingSource {
  /** Number of durations since the start of the process. */
  readonly count: number
  /** The durations after the first `count`: their number, and the most recent values. */
  since(count: number): { readonly values: readonly number[]; readonly total: number }
}

/** All metrics, by statsd name. */
export interface StatsReading {
  /** Totals since the start of the process. */
  readonly counters: Iterable<readonly [name: string, total: number]>
  readonly timings: Iterable<readonly [name: string, times: TimingSource]>
}

/** The server, and what to send. */
export interface StatsdOptions {
  readonly host: string
  readonly port: number
  readonly flushMs: number
  /** Appended to each name as `.__tag=value`, as the reference limiter's library does. */
  readonly tags: ReadonlyMap<string, string>
  readonly read: () => StatsReading
  /** Logs once when the server becomes unavailable, and once when it recovers. */
  readonly log: Pick<Log, 'info' | 'warn'>
}

/** A running statsd client. */
export interface StatsdSink {
  /** Sends the pending increments and stops; within 3.5 s if the server accepts nothing. */
  stop(): Promise<void>
}

const CONNECT_MS_MAX = 1500
/** The connection to a server that accepts nothing for this long is destroyed. */
const WRITE_MS_MAX = 1000
const RETRY_MS_MIN = 1000
const RETRY_MS_MAX = 30_000
const LINES_MAX = 10_000

/** Starts to send. */
export function startStatsd(options: StatsdOptions): StatsdSink {
  const { host, port, flushMs, read, log } = options
  const increments = new Increments(suffixOf(options.tags))
  let socket: Socket | undefined
  let isUnavailable = false
  let retryMs = RETRY_MS_MIN
  let retryAtMs = 0

  const noteFailure = (error: unknown) => {
    socket?.destroy()
    socket = undefined
    retryAtMs = performance.now() + retryMs
    retryMs = Math.min(RETRY_MS_MAX, 2 * retryMs)
    if (!isUnavailable) log.warn({ host, port, reason: String(error) }, 'statsd unavailable')
    isUnavailable = true
  }
  const noteSuccess = () => {
    if (isUnavailable) log.info({ host, port }, 'statsd available')
    isUnavailable = false
    retryMs = RETRY_MS_MIN
  }
  const flush = async () => {
    if (socket?.destroyed === true) socket = undefined // the server has closed the connection
    if (socket === undefined && performance.now() < retryAtMs) return
    try {
      socket ??= await connectTo({ host, port })
      const batch = increments.batchOf(read())
      if (batch.lines !== '') {
        await within(
          WRITE_MS_MAX,
          writeTo(socket, batch.lines),
          () => new Error('the server accepts no data'),
        )
        batch.confirm()
      }
      noteSuccess()
    } catch (error) {
      noteFailure(error)
    }
  }
  const flushing = runInBackground({
    everyMs: flushMs,
    task: () => flush(),
    onError: noteFailure,
  })
  return {
    async stop() {
      const timeoutError = () => new Error('the server accepts no data')
      await within(WRITE_MS_MAX, flushing.stop(), timeoutError).catch(noteFailure)
      if (!isUnavailable) await flush()
      socket?.destroySoon()
    },
  }
}

/** The totals sent so far, from which the next increments are computed. */
class Increments {
  readonly #suffix: string
  #counters = new Map<string, number>()
  readonly #timings = new Map<string, number>()

  constructor(suffix: string) {
    this.#suffix = suffix
  }

  /** The lines to send now; call `confirm` once they have been sent. */
  batchOf(reading: StatsReading): { readonly lines: string; readonly confirm: () => void } {
    const lines: string[] = []
    const add = (name: string, value: string) => {
      if (lines.length >= LINES_MAX) return false
      lines.push(`${name}${this.#suffix}:${value}\n`)
      return true
    }
    const counters = new Map<string, number>()
    for (const [name, total] of reading.counters) {
      const last = this.#counters.get(name) ?? 0
      const before = last > total ? 0 : last // the counter was deleted and recreated
      const isSent = total === before || add(name, `${total - before}|c`)
      counters.set(name, isSent ? total : before)
    }
    const countByName = new Map<string, number>()
    for (const [name, times] of reading.timings) {
      const { values, total } = times.since(this.#timings.get(name) ?? 0)
      const rate = values.length < total ? `|@${(values.length / total).toPrecision(6)}` : ''
      for (const ms of values) add(name, `${Number(ms.toFixed(3))}|ms${rate}`)
      countByName.set(name, times.count)
    }
    const confirm = () => {
      this.#counters = counters
      for (const [name, count] of countByName) this.#timings.set(name, count)
    }
    return { lines: lines.join(''), confirm }
  }
}

function suffixOf(tags: ReadonlyMap<string, string>): string {
  return [...tags]
    .filter(([tag, value]) => tag !== '' && value !== '')
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([tag, value]) => `.__${tag}=${value.replace(/[.:|]/g, '_')}`)
    .join('')
}

async function connectTo(to: { host: string; port: number }): Promise<Socket> {
  const socket = connect(to)
  socket.on('error', () => {
    socket.destroy() // a pending connect rejects below; between two flushes nothing waits
  })
  const connected = new Promise<Socket>((resolve, reject) => {
    socket.once('connect', () => {
      resolve(socket)
    })
    socket.once('error', reject)
  })
  try {
    return await within(CONNECT_MS_MAX, connected, () => new Error('connect timeout'))
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    socket.resume() // data from the server is discarded
    socket.setNoDelay()
  }
}

/** Resolves when the operating system has accepted all data. */
function writeTo(socket: Socket, data: string): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.write(data, (error) => {
      if (error == null) resolve()
      else reject(error)
    })
  })
}
