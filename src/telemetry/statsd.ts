// Tells a statsd server over TCP what has been counted: counters as differences, every few seconds.
// While the server is away nothing is queued: the next difference says it all. Never throws, never
// holds anything up.
import { connect, type Socket } from 'node:net'
import { runInBackground } from '../resilience/background.ts'
import { within } from '../resilience/deadline.ts'
import type { Log } from './log.ts'

/** Times in milliseconds, of which the last can be had. */
interface TimingSource {
  /** How many there were since the process began. */
  readonly count: number
  /** Those that came after the first `count` ones: how many, and the last of them. */
  since(count: number): { readonly values: readonly number[]; readonly seen: number }
}

/** All that is told, by statsd names. */
export interface StatsReading {
  /** Totals since the process began. */
  readonly counters: Iterable<readonly [name: string, total: number]>
  readonly gauges: Iterable<readonly [name: string, value: number]>
  readonly timings: Iterable<readonly [name: string, times: TimingSource]>
}

/** Whom to tell, and what. */
export interface StatsdOptions {
  readonly host: string
  readonly port: number
  readonly flushMs: number
  /** Put at the end of each name as `.__tag=value`, as the reference's library does. */
  readonly tags: ReadonlyMap<string, string>
  readonly read: () => StatsReading
  /** Told once when the server is away, and once when it is back. */
  readonly log: Pick<Log, 'info' | 'warn'>
}

/** What tells a statsd server. */
export interface StatsdSink {
  /** Tells what is left, and ends; within 3.5 s where the server takes nothing. */
  stop(): Promise<void>
}

const CONNECT_MS_MAX = 1500
/** A server that takes nothing for so long is cut off. */
const WRITE_MS_MAX = 1000
const RETRY_MS_MIN = 1000
const RETRY_MS_MAX = 30_000
const LINES_MAX = 10_000

/** Begins to tell. */
export function startStatsd(options: StatsdOptions): StatsdSink {
  const { host, port, flushMs, read, log } = options
  const told = new ToldBefore(suffixOf(options.tags))
  let socket: Socket | undefined
  let isAway = false
  let retryMs = RETRY_MS_MIN
  let retryAtMs = 0

  const noteAway = (error: unknown) => {
    socket?.destroy()
    socket = undefined
    retryAtMs = performance.now() + retryMs
    retryMs = Math.min(RETRY_MS_MAX, 2 * retryMs)
    if (!isAway) log.warn({ host, port, reason: String(error) }, 'statsd is away')
    isAway = true
  }
  const noteBack = () => {
    if (isAway) log.info({ host, port }, 'statsd is back')
    isAway = false
    retryMs = RETRY_MS_MIN
  }
  const flush = async () => {
    if (socket?.destroyed === true) socket = undefined // the server has hung up
    if (socket === undefined && performance.now() < retryAtMs) return
    try {
      socket ??= await connectTo({ host, port })
      const batch = told.batchOf(read())
      if (batch.text !== '') {
        await within(WRITE_MS_MAX, writeTo(socket, batch.text), () => new Error('it takes nothing'))
        batch.confirm()
      }
      noteBack()
    } catch (error) {
      noteAway(error)
    }
  }
  const flushing = runInBackground({
    everyMs: flushMs,
    task: () => flush(),
    onError: noteAway,
  })
  return {
    async stop() {
      const late = () => new Error('it takes nothing')
      await within(WRITE_MS_MAX, flushing.stop(), late).catch(noteAway)
      if (!isAway) await flush()
      socket?.destroySoon()
    },
  }
}

/** What the server has been told, so that counters are told as what came since. */
class ToldBefore {
  readonly #suffix: string
  #counters = new Map<string, number>()
  readonly #timings = new Map<string, number>()

  constructor(suffix: string) {
    this.#suffix = suffix
  }

  /** The lines to tell now; `confirm` is called once they have been taken. */
  batchOf(reading: StatsReading): { readonly text: string; readonly confirm: () => void } {
    const lines: string[] = []
    const add = (name: string, value: string) => {
      if (lines.length >= LINES_MAX) return false
      lines.push(`${name}${this.#suffix}:${value}\n`)
      return true
    }
    const counters = new Map<string, number>()
    for (const [name, total] of reading.counters) {
      const last = this.#counters.get(name) ?? 0
      const before = last > total ? 0 : last // it went and came again
      const isTold = total === before || add(name, `${total - before}|c`)
      counters.set(name, isTold ? total : before)
    }
    for (const [name, value] of reading.gauges) add(name, `${value}|g`)
    const seenBy = new Map<string, number>()
    for (const [name, times] of reading.timings) {
      const { values, seen } = times.since(this.#timings.get(name) ?? 0)
      const rate = values.length < seen ? `|@${(values.length / seen).toPrecision(6)}` : ''
      for (const ms of values) add(name, `${Number(ms.toFixed(3))}|ms${rate}`)
      seenBy.set(name, times.count)
    }
    const confirm = () => {
      this.#counters = counters
      for (const [name, seen] of seenBy) this.#timings.set(name, seen)
    }
    return { text: lines.join(''), confirm }
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
    socket.destroy() // whoever waits for it is told below; between two flushes nobody does
  })
  const connected = new Promise<Socket>((resolve, reject) => {
    socket.once('connect', () => {
      resolve(socket)
    })
    socket.once('error', reject)
  })
  try {
    return await within(CONNECT_MS_MAX, connected, () => new Error('no connection in time'))
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    socket.resume() // what it says is not read
    socket.setNoDelay()
  }
}

/** Resolves when the system has taken all of it. */
function writeTo(socket: Socket, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.write(text, (error) => {
      if (error == null) resolve()
      else reject(error)
    })
  })
}
