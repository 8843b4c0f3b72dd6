// `npm run conformance [-- --against COMMAND] [SUITE...]`: runs the fixtures, client and scripts of
// envoyproxy/ratelimit against our role `ratelimit`, or its client and scripts against the service
// that COMMAND starts. Run it manually, as root on Linux: CI does not have the source that
// REFERENCE_GIT names.
import { execFileSync } from 'node:child_process'
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { roleArguments } from '../kit/processes/role-process.ts'
import { findAptDependency } from '../dependencies/apt.ts'
import { findCurl } from '../dependencies/curl.ts'
import { findEnvoy } from '../dependencies/envoy.ts'
import { runClient } from './client.ts'
import { checkFixtures } from './fixtures.ts'
import type { Outcome } from './outcome.ts'
import { CannotRun, readServiceEnv, unpackReference } from './reference.ts'
import { runScripts, type TaskOf } from './scripts.ts'
import { findStatsdExporter } from './statsd-exporter.ts'

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
/** The deadline of the whole run, without the download of dependencies. */
const RUN_MS_MAX = 25 * 60_000
const hosts = '127.0.0.1 localhost redis statsd ratelimit envoy-proxy envoy-mock\n'
/** Fails immediately for names that are not in the hosts file. */
const resolver = 'options timeout:1 attempts:1\n'

const log = (line: string) => void process.stdout.write(`${line}\n`)

const suites = ['fixtures', 'client', 'scripts'] as const

function readRequest() {
  const options = { against: { type: 'string' } } as const
  const { values, positionals } = parseArgs({ options, allowPositionals: true })
  const unknown = positionals.find((suite) => !suites.some((name) => name === suite))
  if (unknown !== undefined) {
    throw new CannotRun(`SUITE must be one of ${suites.join(', ')}: it is '${unknown}'`)
  }
  const git = process.env['REFERENCE_GIT']
  if (git === undefined || git === '') {
    throw new CannotRun(
      'REFERENCE_GIT must name a git directory of envoyproxy/ratelimit: create it with ' +
        'git clone --bare https://github.com/envoyproxy/ratelimit',
    )
  }
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    throw new CannotRun('the conformance run needs Linux and root: it creates namespaces')
  }
  const ours = [process.execPath, ...roleArguments('ratelimit')]
  const service = values.against?.split(' ') ?? ours
  const selected = suites.filter((suite) => positionals.length === 0 || positionals.includes(suite))
  // The fixtures run our own check, which no other service has.
  const chosen = selected.filter((suite) => suite !== 'fixtures' || values.against === undefined)
  return { git, service, chosen, client: process.env['REFERENCE_CLIENT'] }
}

function printOutcome({ name, hasPassed, detail }: Outcome): void {
  const [first = '', ...more] = detail.trim().split('\n')
  log(`${hasPassed ? 'PASS' : 'FAIL'} ${name}: ${first}`)
  for (const line of more) log(`     | ${line}`)
}

/** Returns a function that creates tasks, each with its own copy of the reference's rules. */
async function prepareTasks(
  folder: string,
  given: { reference: string; service: readonly string[] },
): Promise<TaskOf> {
  const [envoy, statsdExporter] = await Promise.all([findEnvoy(), findStatsdExporter()])
  await findAptDependency('redis-server')
  await findCurl()
  const hostsFile = join(folder, 'hosts')
  const resolverFile = join(folder, 'resolv.conf')
  await writeFile(hostsFile, hosts)
  await writeFile(resolverFile, resolver)
  const env = await readServiceEnv(given.reference)
  const paths = { hostsFile, resolverFile, envoy, statsdExporter, cwd: root }
  let count = 0
  return async (name, commands) => {
    const own = join(folder, `${String(++count)}-${name}`)
    const rules = join(own, 'data/ratelimit/config')
    await mkdir(rules, { recursive: true })
    await cp(join(given.reference, 'examples/ratelimit/config'), rules, { recursive: true })
    // The script that reads the statistics waits 5 s, and the default flush interval is 10 s.
    const ours = { RUNTIME_ROOT: join(own, 'data'), STATS_FLUSH_INTERVAL: '1s' }
    const task = { ...paths, ...given, folder: own, serviceEnv: { ...env, ...ours } }
    return { ...task, ...commands }
  }
}

async function main(): Promise<number> {
  const { git, service, chosen, client } = readRequest()
  const folder = await mkdtemp(join(tmpdir(), 'curtail-conformance-'))
  try {
    log(`reference: ${(await unpackReference(git, folder)).trim()}`)
    const taskOf = await prepareTasks(folder, { reference: folder, service })
    const deadline = setTimeout(() => {
      log(`FAIL the run: it took longer than ${RUN_MS_MAX / 60_000} minutes`)
      process.exit(1) // this also kills the stacks
    }, RUN_MS_MAX)
    const check = [process.execPath, ...roleArguments('ratelimit-check')]
    const runs = {
      fixtures: () => checkFixtures(folder, check),
      client: () => runClient(client, taskOf),
      scripts: () => runScripts({ reference: folder, taskOf, log }),
    }
    const all: Outcome[] = []
    for (const suite of chosen) {
      const outcomes = await runs[suite]()
      outcomes.forEach(printOutcome)
      all.push(...outcomes)
    }
    clearTimeout(deadline)
    const failed = all.filter(({ hasPassed }) => !hasPassed).length
    log(`${all.length - failed} passed, ${failed} failed`)
    return failed === 0 ? 0 : 1
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

try {
  execFileSync('unshare', ['--version'], { stdio: 'ignore' })
  process.exitCode = await main()
} catch (error) {
  process.stderr.write(`curtail: ${error instanceof Error ? error.message : String(error)}\n`)
  const isUsageError = error instanceof CannotRun || error instanceof TypeError
  process.exitCode = isUsageError ? 2 : 1
}
