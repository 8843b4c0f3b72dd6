// Attacks on the limiter's HTTP/2, each for ten minutes (SECONDS=60: for a minute), with the memory
// of the chart: a legitimate client at 200 calls a second loses no call, and its p99 is bounded.
import { attacks } from '../kit/ratelimit/grpc-attacks.ts'
import { callUnderAttack, type UnderAttack } from '../kit/ratelimit/grpc-under-attack.ts'
import { startLimiter } from '../kit/ratelimit/limiter.ts'
import { startRedis } from '../dependencies/redis.ts'

const MIB = 2 ** 20
/** As in the chart: the options of Node.js, and the container's memory limit. */
const nodeOptions = ['--max-old-space-size=192', '--max-semi-space-size=8']
const RESIDENT_BYTES_MAX = 384 * MIB
const P99_MS_MAX = 50
const seconds = Number(process.env['SECONDS'] ?? 600)
const only = process.env['ATTACKS']?.split(',')
const rules = `
domain: shop
descriptors:
  - {key: honest, rate_limit: {unit: second, requests_per_unit: 1000000}}
  - {key: k, rate_limit: {unit: hour, requests_per_unit: 5}}
`

/** Runs the test at full size. */
export async function run({ log }: { log: (line: string) => void }): Promise<void> {
  const redis = await startRedis()
  const faults: string[] = []
  try {
    const names = Object.keys(attacks).filter((name) => only?.includes(name) ?? true)
    for (const attack of only === undefined ? [undefined, ...names] : names) {
      const outcome = await attackOne(redis.port, attack)
      const bad = faultOf(outcome)
      log(`${attack ?? 'no attack'}: ${render(outcome)}${bad === undefined ? '' : `: ${bad}`}`)
      if (bad !== undefined) faults.push(`${attack ?? 'no attack'}: ${bad}`)
    }
  } finally {
    await redis.close()
  }
  if (faults.length > 0) throw new Error(faults.join('; '))
}

async function attackOne(redisPort: number, attack: string | undefined): Promise<UnderAttack> {
  const limiter = await startLimiter({ rules, redisPort, nodeOptions })
  const { grpcPort: port, pid } = limiter
  try {
    return await callUnderAttack({ attack, port, pid, seconds })
  } finally {
    await limiter.stop()
  }
}

function render({ calls, lost, p50, p99, residentBytesMax, attacker }: UnderAttack): string {
  const mebibytes = (residentBytesMax / MIB).toFixed(0)
  const times = `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`
  const example = lost[0] === undefined ? '' : ` (${lost[0]})`
  return `${calls} calls, ${lost.length} lost${example}, ${times}, ${mebibytes} MiB, ${attacker}`
}

function faultOf({ lost, p99, residentBytesMax }: UnderAttack): string | undefined {
  if (lost.length > 0) return 'calls were lost'
  if (p99 >= P99_MS_MAX) return `p99 is not below ${String(P99_MS_MAX)} ms`
  return residentBytesMax > RESIDENT_BYTES_MAX ? 'its memory exceeds the limit' : undefined
}
