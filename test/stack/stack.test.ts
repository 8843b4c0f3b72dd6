// The whole service behind Envoy, as real processes. All suites share one stack, and none depends
// on another: jest's `-t 'NAME suite'` runs one suite alone.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe } from '@jest/globals'
import { type RunningCollector, startCollector } from '../dependencies/collector.ts'
import { testCatalogue } from './catalogue-suite.ts'
import { testContract } from './contract-suite.ts'
import { testLimiterFaults } from './limiter-faults-suite.ts'
import { testLimits } from './limits-suite.ts'
import { testLoad } from './load-suite.ts'
import { testMonitoring } from './monitoring-suite.ts'
import { testPodFaults } from './pod-faults-suite.ts'
import { restoreStack } from './stack-state.ts'
import { type Stack, startStack } from './start-stack.ts'
import { testTracing } from './tracing-suite.ts'

// The set-up may download Java, Maven, the jars, Envoy and Redis, and build the collector.
const SETUP_MS_MAX = 1_800_000
const RESTORE_MS_MAX = 300_000
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
}, SETUP_MS_MAX)

afterAll(async () => {
  await stack.stop()
  await collector.stop()
}, STOP_MS_MAX)

const stackNow = () => stack

/** The suites by name, in order. */
const suites = {
  contract: () => {
    testContract(stackNow)
  },
  limits: () => {
    testLimits(stackNow, API_KEY)
  },
  tracing: () => {
    testTracing(stackNow, () => collector)
  },
  load: () => {
    testLoad(stackNow)
  },
  monitoring: () => {
    testMonitoring(stackNow)
  },
  'limiter-faults': () => {
    testLimiterFaults(stackNow)
  },
  'pod-faults': () => {
    testPodFaults(stackNow)
  },
  catalogue: () => {
    testCatalogue(stackNow)
  },
}

describe.each(Object.entries(suites))('%s suite', (_, defineTests) => {
  beforeAll(() => restoreStack(stack), RESTORE_MS_MAX)
  defineTests()
})
