// A legitimate client that calls a limiter at a constant rate during an attack: its lost calls, the
// latency of the others, and the peak memory of the limiter.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { constants, setPriority } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createTestClient } from './grpc-client.ts'
import { withinDeadline } from '../wait-for.ts'

const program = join(dirname(fileURLToPath(import.meta.url)), 'grpc-attacker.ts')
const CALLS_PER_SECOND = 200
/** On a busy machine, a process with the lowest priority waits long for a CPU. */
const REPORT_MS_MAX = 60_000

/** The results of the legitimate calls, and the peak memory of the limiter. */
export interface UnderAttack {
  readonly calls: number
  readonly lost: readonly string[]
  readonly p50: number
  readonly p99: number
  /** The peak resident memory of the process since its start. */
  readonly residentBytesMax: number
  /** The report of the attacker. */
  readonly attacker: string
}

/** Sends calls at a constant rate for `seconds`, during the attack of this name if it is set. */
export async function callUnderAttack(given: {
  readonly attack: string | undefined
  readonly port: number
  readonly pid: number
  readonly seconds: number
}): Promise<UnderAttack> {
  const { attack, port, pid, seconds } = given
  const attacker =
    attack === undefined ? undefined : spawn(process.execPath, [program, attack, String(port)])
  attacker?.stderr.pipe(process.stderr)
  // A real attacker has its own machine; this one has the lowest CPU priority instead.
  if (attacker?.pid !== undefined) setPriority(attacker.pid, constants.priority.PRIORITY_LOW)
  const client = createTestClient(`127.0.0.1:${port}`)
  try {
    const times: number[] = []
    const lost: string[] = []
    const call = async () => {
      const startMs = performance.now()
      const entries = [{ key: 'honest', value: 'client' }]
      await client.call({ domain: 'shop', descriptors: [{ entries }] }).then(
        () => times.push(performance.now() - startMs),
        (error: unknown) => lost.push(String(error)),
      )
    }
    const calls = await atRate(call, seconds)
    times.sort((a, b) => a - b)
    const at = (share: number) => times[Math.floor((times.length - 1) * share)] ?? Infinity
    const report = attacker === undefined ? '-' : await reportOf(attacker)
    const [p50, p99] = [at(0.5), at(0.99)]
    return {
      calls,
      lost,
      p50,
      p99,
      residentBytesMax: await peakResidentBytes(pid),
      attacker: report,
    }
  } finally {
    client.close()
    attacker?.kill('SIGKILL')
  }
}

/**
 * Sends calls at a constant rate, without waiting for results; resolves once all have completed.
 */
async function atRate(call: () => Promise<void>, seconds: number): Promise<number> {
  const sent: Promise<void>[] = []
  const startMs = performance.now()
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const passed = (performance.now() - startMs) / 1000
      while (sent.length < Math.min(passed, seconds) * CALLS_PER_SECOND) sent.push(call())
      if (passed < seconds) return
      clearInterval(timer)
      resolve()
    }, 5)
  })
  await Promise.all(sent)
  return sent.length
}

async function reportOf(attacker: ReturnType<typeof spawn>): Promise<string> {
  if (attacker.stdout === null) return ''
  const line = once(attacker.stdout, 'data')
  attacker.stdin?.end()
  const received = withinDeadline('the report of the attacker', line, REPORT_MS_MAX)
  const [report] = (await received) as [Buffer]
  return report.toString().trim()
}

async function peakResidentBytes(pid: number): Promise<number> {
  const found = /^VmHWM:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))
  if (found === null) throw new Error('the limiter has exited')
  return Number(found[1]) * 1024
}
