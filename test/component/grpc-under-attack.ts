// An honest client at a steady rate beside an attack: how many of its calls were lost, how long
// they took, and how much memory the limiter had at most.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { constants, setPriority } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createTestClient } from './grpc-client.ts'
import { inTime } from './wait-for.ts'

const program = join(dirname(fileURLToPath(import.meta.url)), 'grpc-attacker.ts')
const EACH_SECOND = 200

/** What became of the honest calls, and of the limiter. */
export interface UnderAttack {
  readonly calls: number
  readonly lost: readonly string[]
  readonly p50: number
  readonly p99: number
  /** The most that the process has had since its start. */
  readonly residentBytesMax: number
  /** What the attacker did. */
  readonly attacker: string
}

/** Calls at a steady rate for so long, beside the attack of this name if there is one. */
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
  // An attacker has machines of its own: here it gets the CPU time that the others leave.
  if (attacker?.pid !== undefined) setPriority(attacker.pid, constants.priority.PRIORITY_LOW)
  const client = createTestClient(`127.0.0.1:${port}`)
  try {
    const times: number[] = []
    const lost: string[] = []
    const call = async () => {
      const begunMs = performance.now()
      const entries = [{ key: 'honest', value: 'client' }]
      await client.call({ domain: 'shop', descriptors: [{ entries }] }).then(
        () => times.push(performance.now() - begunMs),
        (error: unknown) => lost.push(String(error)),
      )
    }
    const calls = await atRate(call, seconds)
    times.sort((a, b) => a - b)
    const at = (share: number) => times[Math.floor((times.length - 1) * share)] ?? Infinity
    const did = attacker === undefined ? '-' : await endOf(attacker)
    const [p50, p99] = [at(0.5), at(0.99)]
    return { calls, lost, p50, p99, residentBytesMax: await residentMost(pid), attacker: did }
  } finally {
    client.close()
    attacker?.kill('SIGKILL')
  }
}

/** Makes calls without waiting for one before the next; resolves with how many, all ended. */
async function atRate(call: () => Promise<void>, seconds: number): Promise<number> {
  const made: Promise<void>[] = []
  const begunMs = performance.now()
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const passed = (performance.now() - begunMs) / 1000
      while (made.length < Math.min(passed, seconds) * EACH_SECOND) made.push(call())
      if (passed < seconds) return
      clearInterval(timer)
      resolve()
    }, 5)
  })
  await Promise.all(made)
  return made.length
}

async function endOf(attacker: ReturnType<typeof spawn>): Promise<string> {
  if (attacker.stdout === null) return ''
  const line = once(attacker.stdout, 'data')
  attacker.stdin?.end()
  const [text] = (await inTime('what the attacker did', line)) as [Buffer]
  return text.toString().trim()
}

async function residentMost(pid: number): Promise<number> {
  const found = /^VmHWM:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))
  if (found === null) throw new Error('the limiter has ended')
  return Number(found[1]) * 1024
}
