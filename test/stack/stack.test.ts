// The whole service behind Envoy, as real processes: one start for all chapters, the last of which
// leave parts of it dead.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll } from '@jest/globals'
import { type RunningCollector, startCollector } from '../parts/collector.ts'
import { describeCatalogue } from './catalogue-chapter.ts'
import { describeContract } from './contract-chapter.ts'
import { describeLimiterFaults } from './limiter-faults-chapter.ts'
import { describeLimits } from './limits-chapter.ts'
import { describeLoad } from './load-chapter.ts'
import { describeMonitoring } from './monitoring-chapter.ts'
import { describePodFaults } from './pod-faults-chapter.ts'
import { untilWhole } from './stack-state.ts'
import { type Stack, startStack } from './start-stack.ts'
import { describeTracing } from './tracing-chapter.ts'

// Java, Maven, the jars, Envoy and Redis may have to be fetched, and the collector to be built.
const SETUP_MS_MAX = 1_800_000
const STOP_MS_MAX = 120_000
/** A key that the rules know. */
const API_KEY = 'key-of-the-tests'

let stack: Stack
let collector: RunningCollector

beforeAll(async () => {
  const shipped = await readFile(new URL('../../envoy/rate-limits.yaml', import.meta.url), 'utf8')
  const hash = createHash('sha256').update(API_KEY).digest('hex')
  const rules = shipped
    .replace('0'.repeat(64), hash)
    .replace(/unit: minute(\s+)requests_per_unit: 60$/m, 'window: 5s$1requests_per_unit: 20')
  collector = await startCollector()
  stack = await startStack({ cassandraNodes: 3, trustedHops: 1, rules, collector })
  await untilWhole(stack)
}, SETUP_MS_MAX)

afterAll(async () => {
  await stack.stop()
  await collector.stop()
}, STOP_MS_MAX)

const stackNow = () => stack

describeContract(stackNow)
describeLimits(stackNow, API_KEY)
describeTracing(stackNow, () => collector)
describeLoad(stackNow)
describeMonitoring(stackNow)
describeLimiterFaults(stackNow)
describePodFaults(stackNow)
describeCatalogue(stackNow)
