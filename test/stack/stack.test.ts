// The whole service behind Envoy, as real processes: one start for all chapters, the last of which
// leave parts of it dead.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll } from '@jest/globals'
import { describeContract } from './contract-chapter.ts'
import { describeLimiterFaults } from './limiter-faults-chapter.ts'
import { describeLimits } from './limits-chapter.ts'
import { describeLoad } from './load-chapter.ts'
import { describeMonitoring } from './monitoring-chapter.ts'
import { describePodFaults } from './pod-faults-chapter.ts'
import { untilWhole } from './stack-state.ts'
import { type Stack, startStack } from './start-stack.ts'

const SETUP_MS_MAX = 900_000 // Java, Maven, the jars, Envoy and Redis may have to be fetched
const STOP_MS_MAX = 120_000
/** A key that the rules know. */
const API_KEY = 'key-of-the-tests'

let stack: Stack

beforeAll(async () => {
  const shipped = await readFile(new URL('../../envoy/rate-limits.yaml', import.meta.url), 'utf8')
  const hash = createHash('sha256').update(API_KEY).digest('hex')
  const rules = shipped
    .replace('0'.repeat(64), hash)
    .replace(/unit: minute(\s+)requests_per_unit: 60$/m, 'window: 5s$1requests_per_unit: 20')
  stack = await startStack({ cassandraNodes: 3, trustedHops: 1, rules })
  await untilWhole(stack)
}, SETUP_MS_MAX)

afterAll(async () => {
  await stack.stop()
}, STOP_MS_MAX)

const stackNow = () => stack

describeContract(stackNow)
describeLimits(stackNow, API_KEY)
describeLoad(stackNow)
describeMonitoring(stackNow)
describeLimiterFaults(stackNow)
describePodFaults(stackNow)
