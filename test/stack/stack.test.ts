// The whole service behind Envoy, as real processes: all suites share one stack. The last suites
// leave components of it stopped.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll } from '@jest/globals'
import { type RunningCollector, startCollector } from '../dependencies/collector.ts'
import { describeCatalogue } from './catalogue-suite.ts'
import { describeContract } from './contract-suite.ts'
import { describeLimiterFaults } from './limiter-faults-suite.ts'
import { describeLimits } from './limits-suite.ts'
import { describeLoad } from './load-suite.ts'
import { describeMonitoring } from './monitoring-suite.ts'
import { describePodFaults } from './pod-faults-suite.ts'
import { untilWhole } from './stack-state.ts'
import { type Stack, startStack } from './start-stack.ts'
import { describeTracing } from './tracing-suite.ts'

// The setup may download Java, Maven, the jars, Envoy and Redis, and build the collector.
const SETUP_MS_MAX = 1_800_000
const STOP_MS_MAX = 120_000
/** An API key that the rules file lists. */
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
