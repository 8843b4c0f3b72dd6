// Mutation tests: change the code in one place at a time and run its module's tests, of which one
// must fail. MODULES names some of the modules, separated by commas, and FILES some of their files.
// All of them take hours.
import { Stryker } from '@stryker-mutator/core'
import { startCassandra } from '../dependencies/cassandra.ts'
import { isUndetected, MUTANTS_FOLDER } from './mutants/reporter.ts'

const SCORE_MIN = 0.85
/** How many mutants run concurrently; one that loops is aborted after `mutantMsMax`. */
interface Bounds {
  readonly mutantMsMax: number
  readonly processes: number
}
/** More processes than cores, since some mutants only wait. */
const defaultBounds: Bounds = { mutantMsMax: 30_000, processes: 3 }
/** For a module whose tests connect to Cassandra: most of their mutants wait for a server. */
const cassandraBounds: Bounds = { mutantMsMax: 90_000, processes: 6 }
/** The share of the tests, after which the runner starts no other file. */
const TESTS_RATIO = 1 / 2
/** The ratio of the timeout of one test, which a mutant that waits without end exceeds. */
const TEST_RATIO = 1 / 3
/** Jest keeps about 8 MB for each mutant until its process ends. */
const PROCESS_MUTANTS_MAX = 50

interface Module {
  readonly folders: readonly string[]
  /** Test files besides the unit tests in the folders; they must run the code in jest's process. */
  readonly tests?: readonly string[]
  /** Files of `folders` that run in a thread, where it is unknown which tests cover a mutant. */
  readonly threads?: readonly string[]
  /** Whether the tests share a Cassandra node. @default false */
  readonly usesCassandra?: boolean
}

const modules: Readonly<Record<string, Module>> = {
  links: { folders: ['src/links'] },
  codes: { folders: ['src/codes'] },
  limits: {
    folders: ['src/limits'],
    tests: [
      'src/limiter/decide/*.test.ts',
      'src/stores/memory/*.test.ts',
      'src/policies/config-tree.test.ts',
      'test/contract/counter-store.test.ts',
    ],
  },
  limiter: {
    folders: ['src/limiter'],
    tests: ['test/component/ratelimit/{ads-server-requests,rule-reload,statsd}.test.ts'],
  },
  resolve: {
    folders: ['src/resolve', 'src/resilience'],
    tests: ['src/limiter/decide/guard-store.test.ts', 'test/model/**/*.test.ts'],
  },
  create: {
    folders: ['src/create', 'src/pools', 'src/admin'],
    tests: ['test/model/**/*.test.ts'],
  },
  http2: {
    folders: ['src/grpc/http2'],
    tests: [
      'src/grpc/*.test.ts',
      'test/component/ratelimit/grpc-{bounds,frames,stream-faults,serve}.test.ts',
    ],
  },
  kube: { folders: ['src/kube'] },
  stores: {
    folders: ['src/stores'],
    tests: [
      'test/contract/{code,counter,intent,link,report}-*.test.ts',
      'test/contract/link-cache.test.ts',
      'test/component/stores/redis-{credentials*,faults,link-cache,link-cache-entries}.test.ts',
      'test/component/stores/redis-{script,topologies}.test.ts',
      'test/component/stores/sqlite*.test.ts',
    ],
    threads: ['src/stores/sqlite/writer-thread.ts'],
    usesCassandra: true,
  },
}

/** Logs the undetected mutants and the score of each module; throws if a score is too low. */
export async function run({ log }: { log: (line: string) => void }): Promise<void> {
  const names = process.env['MODULES']?.split(',') ?? Object.keys(modules)
  const low: string[] = []
  for (const name of names) {
    const module = modules[name]
    if (module === undefined) {
      const allowed = Object.keys(modules).join(', ')
      throw new Error(`Cannot mutate the module '${name}': MODULES must be some of ${allowed}`)
    }
    const run = () => measure(name, module, log)
    const score = await (module.usesCassandra === true ? withCassandra(run) : run())
    if (score < SCORE_MIN) low.push(`${name} ${score.toFixed(3)}`)
  }
  if (low.length > 0) throw new Error(`score below ${String(SCORE_MIN)}: ${low.join(', ')}`)
}

/** Runs a function while the tests have a Cassandra node (test/contract/open-cassandra.ts). */
async function withCassandra<T>(run: () => Promise<T>): Promise<T> {
  const node = await startCassandra({ nodes: 1 })
  const { contactPoints, port, localDc } = node
  process.env['MUTANT_CASSANDRA'] = JSON.stringify({ contactPoints, port, localDc })
  try {
    return await run()
  } finally {
    await node.stop()
  }
}

/** Runs every mutant of a module; resolves to the ratio of those that a test detects. */
async function measure(
  name: string,
  { folders, tests = [], threads = [], usesCassandra = false }: Module,
  log: (line: string) => void,
): Promise<number> {
  const bounds = usesCassandra ? cassandraBounds : defaultBounds
  process.env['MUTANT_TESTS'] = [...folders.map((one) => `${one}/**/*.test.ts`), ...tests].join(' ')
  process.env['MUTANT_TESTS_MS'] = String(bounds.mutantMsMax * TESTS_RATIO)
  process.env['MUTANT_TEST_MS'] = String(bounds.mutantMsMax * TEST_RATIO)
  const all = folders.flatMap((folder) => [`${folder}/**/*.ts`, `!${folder}/**/*.test.ts`])
  const files = process.env['FILES']?.split(',') ?? [...all, ...threads]
  const inThreads = threads.filter((thread) => files.includes(thread))
  const others = [...files, ...threads.map((thread) => `!${thread}`)]
  const results = [
    ...(await runMutants({ mutate: others, coverageAnalysis: 'perTest' }, bounds)),
    ...(inThreads.length === 0
      ? []
      : await runMutants({ mutate: inThreads, coverageAnalysis: 'off' }, bounds)),
  ]
  const detected = results.filter(({ status }) => status === 'Killed' || status === 'Timeout')
  const count = detected.length + results.filter(isUndetected).length
  if (count === 0) throw new Error(`Cannot measure ${name}: no mutant in ${folders.join(', ')}`)
  const score = detected.length / count
  log(`${name}: ${String(detected.length)} of ${String(count)} detected, ${score.toFixed(3)}`)
  return score
}

/** Runs the mutants of files; every test runs for each of them, or only those that cover it. */
function runMutants(
  files: { readonly mutate: string[]; readonly coverageAnalysis: 'perTest' | 'off' },
  { mutantMsMax, processes }: Bounds,
) {
  const stryker = new Stryker({
    ...files,
    // The wording of a message is not logic.
    mutator: { plugins: null, excludedMutations: ['StringLiteral'] },
    testRunner: 'jest',
    plugins: ['@stryker-mutator/jest-runner', './test/soak/mutants/reporter.ts'],
    jest: { configFile: 'test/soak/mutants/config.js', enableFindRelatedTests: false },
    testRunnerNodeArgs: ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'],
    concurrency: processes,
    timeoutMS: mutantMsMax,
    timeoutFactor: 0,
    maxTestRunnerReuse: PROCESS_MUTANTS_MAX,
    reporters: ['progress-append-only', 'undetected'],
    tempDirName: MUTANTS_FOLDER,
    ignorePatterns: ['charts'], // Stryker cannot copy its symbolic link
  })
  return stryker.runMutationTest()
}
