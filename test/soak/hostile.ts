// Malformed and hostile calls against the real `ratelimit` role on a real Redis: it does not crash,
// and valid calls get a response.
import { hostileCalls, renderHostileCounts } from '../kit/ratelimit/grpc-hostile.ts'
import { startLimiter } from '../kit/ratelimit/limiter.ts'
import { startRedis } from '../dependencies/redis.ts'

const CALLS = 100_000
const rules = `
domain: shop
descriptors:
  - {key: k, rate_limit: {unit: hour, requests_per_unit: 5}}
`

/** Runs the test at full size. */
export async function run({ seed, log }: { seed: number; log: (line: string) => void }) {
  const redis = await startRedis()
  const limiter = await startLimiter({ rules, redisPort: redis.port })
  try {
    log(renderHostileCounts(await hostileCalls({ port: limiter.grpcPort, calls: CALLS, seed })))
    const response = await limiter.decide({ k: 'after' })
    if (response.overallCode !== 'OK') throw new Error(`afterwards: ${JSON.stringify(response)}`)
    const metrics = await (await fetch(`${limiter.adminUrl}/metrics`)).text()
    const series = metrics.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length
    if (series >= 1000) throw new Error(`${String(series)} series, expected fewer than 1000`)
    log(`${String(series)} series`)
  } finally {
    await limiter.stop()
    await redis.close()
  }
}
