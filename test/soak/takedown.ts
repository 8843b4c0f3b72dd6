// `curtail link disable --target-host` on a large table under a load of redirects: it is killed,
// restarted, stopped and continued, and then exactly the links of the host are disabled.
// `LINKS=n` and `TARGETS=n` set the size, `STORE=sqlite` selects standalone instead of create pods.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { cpuUsOf } from '../../loadtest/bench/process-figures.ts'
import { createTableSummer, EVIL, recordAt, type TableSums } from '../kit/links/link-rows.ts'
import { type RedirectLoad, startRedirectLoad } from '../kit/links/redirect-load.ts'
import { roleArguments } from '../kit/processes/role-process.ts'
import {
  startTakedownWorld,
  type StoreName,
  type TakedownWorld,
} from '../kit/processes/takedown-world.ts'
import { createRandom } from '../kit/random.ts'
import { withinDeadline } from '../kit/wait-for.ts'

const FULL_LINKS = 10_000_000
const TARGET_RATIO = 100
const LINKS_MIN = 10_000
/** So many that the command is killed and stopped before it completes. */
const TARGETS_MIN = 100
/** The command is killed, and later stopped, when it has changed these shares of the targets. */
const KILL_AT = 0.02
const STOP_AT = 0.5
/** The load without a scan is measured for so long. */
const REFERENCE_MS = 30_000
const STOPPED_MS_MAX = 5000
/** The rate at which the command must at least read links, for the deadline. */
const LINKS_PER_SECOND_MIN = 500
const CHANGES_IN_FLIGHT_MAX = 256

const root = fileURLToPath(new URL('../..', import.meta.url))

type Log = (line: string) => void

/** Runs the test at full size. */
export async function run({ seed, log }: { seed: number; log: Log }): Promise<void> {
  const { store, ...size } = readOptions()
  const { links, targets } = size
  const seconds = stopwatch()
  let startedMs = 0
  const onRows = (rows: number) => {
    if (rows === 0) startedMs = performance.now()
    else log(`${rows} rows written, ${(rows / (performance.now() - startedMs)).toFixed(1)} per ms`)
  }
  const world = await startTakedownWorld(store, { ...size, onRows })
  try {
    log(`${store}: ${links} links, ${targets} of ${EVIL}, written and started in ${seconds()} s`)
    const load = startRedirectLoad({ port: world.port, size, random: createRandom(seed) })
    try {
      await sleep(REFERENCE_MS)
      load.reset() // the first responses fill caches
      await sleep(REFERENCE_MS)
      log(`without the command: ${load.figures()}`)
      await disableAll(world, { load, ...size, log })
      await sleep(STOPPED_MS_MAX)
      await load.checkSample()
    } finally {
      await load.stop()
    }
    const summer = createTableSummer()
    for (let i = 0; i < links; i++) summer.add(recordAt(i, size))
    const readSeconds = stopwatch()
    checkSums({ before: summer.result(), after: await world.sums(), targets })
    log(`exactly the ${targets} links are disabled; all rows were read in ${readSeconds()} s`)
  } finally {
    await world.stop()
  }
}

function readOptions(): { store: StoreName; links: number; targets: number } {
  const { LINKS, TARGETS, STORE: store = 'cassandra' } = process.env
  const links = Number(LINKS ?? FULL_LINKS)
  const targets = Number(TARGETS ?? Math.ceil(links / TARGET_RATIO))
  if (!Number.isSafeInteger(links) || links < LINKS_MIN) {
    throw new Error(`LINKS must be an integer of at least ${LINKS_MIN}: it is ${LINKS}`)
  }
  if (!Number.isSafeInteger(targets) || targets < TARGETS_MIN || targets > links / 2) {
    const allowed = `${TARGETS_MIN} to half of LINKS`
    throw new Error(`TARGETS must be an integer from ${allowed}: it is ${targets}`)
  }
  if (store !== 'cassandra' && store !== 'sqlite') {
    throw new Error(`STORE must be cassandra or sqlite: it is ${store}`)
  }
  return { store, links, targets }
}

function stopwatch(): () => string {
  const startedMs = performance.now()
  return () => ((performance.now() - startedMs) / 1000).toFixed(1)
}

interface DisableOptions {
  readonly load: RedirectLoad
  readonly links: number
  readonly targets: number
  readonly log: Log
}

/** Runs the command until all links are read: with a kill, a restart, a stop and a continuation. */
async function disableAll(world: TakedownWorld, options: DisableOptions): Promise<void> {
  const { load, links, targets, log } = options
  const changed = new Set<string>()
  const msMax = (links / LINKS_PER_SECOND_MIN) * 1000 + 60_000
  const runOne = async (signal: NodeJS.Signals | undefined, share: number, args: string[] = []) => {
    const [seconds, cpu] = [stopwatch(), watchCpu(world)]
    const before = changed.size
    let isSignalled = signal === undefined
    const command = startCommand(world, args, (code) => {
      if (code === undefined) return
      changed.add(code)
      load.confirm(code)
      if (isSignalled || changed.size < share * targets) return
      isSignalled = true // a second signal would kill it
      command.child.kill(signal)
    })
    try {
      const { exit, stderr } = await withinDeadline('the command', command.exited, msMax)
      const [elapsed, changes] = [Number(seconds()), changed.size - before]
      const [, scanned] = /(?:scanned|stopped after) (\d+)/.exec(stderr) ?? []
      const rate = (count: number) => `${count} (${Math.round(count / elapsed)} per second)`
      const read = scanned === undefined ? '' : ` ${rate(Number(scanned))} links read,`
      log(
        `exit ${exit} after ${elapsed} s:${read} ${rate(changes)} changed; ` +
          `CPU in cores: ${cpu(elapsed)}`,
      )
      log(`meanwhile: ${load.figures()}`)
      return { exit, stderr }
    } finally {
      command.child.kill('SIGKILL')
    }
  }
  const killed = await runOne('SIGKILL', KILL_AT)
  if (killed.exit !== 'SIGKILL') throw new Error(`the killed command exited with ${killed.exit}`)
  const stopped = await runOne('SIGINT', STOP_AT)
  const [, option] = /continue with (--after=\S+)$/m.exec(stopped.stderr) ?? []
  if (stopped.exit !== 1 || option === undefined) {
    throw new Error(`the stopped command exited with ${stopped.exit}: ${stopped.stderr}`)
  }
  const last = await runOne(undefined, 1, [option])
  if (last.exit !== 0) throw new Error(`the command failed: ${last.stderr}`)
  log(last.stderr.trim())
  // A killed command does not print the changes that were in flight.
  if (changed.size > targets || changed.size < targets - CHANGES_IN_FLIGHT_MAX) {
    throw new Error(`the commands printed ${changed.size} changes of ${targets}`)
  }
}

/** Starts the command; calls `onChange` with each code that it prints. */
function startCommand(
  world: TakedownWorld,
  args: readonly string[],
  onChange: (code: string | undefined) => void,
) {
  const own = ['link', 'disable', `--target-host=${EVIL}`, '--json', ...args]
  const child: ChildProcess = spawn(process.execPath, roleArguments(...own), {
    cwd: root,
    env: { PATH: process.env['PATH'], ADMIN_URL: world.adminUrl, ADMIN_TOKEN: world.adminToken },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stderr = ''
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  if (child.stdout === null) throw new Error('the command has no output')
  createInterface({ input: child.stdout }).on('line', (line) => {
    onChange(codeIn(line))
  })
  const exited = once(child, 'close').then(([code, signal]) => {
    return { exit: (code ?? signal) as number | NodeJS.Signals, stderr }
  })
  return { child, exited }
}

/** The code in a line; a killed command may print the start of one. */
function codeIn(line: string): string | undefined {
  const [, code] = /^\{"short_code":"([\w-]+)".*"state":"disabled".*\}$/.exec(line) ?? []
  return code
}

/** Measures the CPU time of the processes from now on, in cores. */
function watchCpu({ pids }: TakedownWorld): (seconds: number) => string {
  const before = Object.entries(pids).map(([name, pid]) => ({ name, pid, us: cpuUsOf(pid) }))
  return (seconds) =>
    before
      .map(({ name, pid, us }) => `${name} ${((cpuUsOf(pid) - us) / 1e6 / seconds).toFixed(2)}`)
      .join(', ')
}

/** Throws unless exactly the targets were disabled, and no other column and row has changed. */
function checkSums(given: { before: TableSums; after: TableSums; targets: number }): void {
  const { before, after, targets } = given
  const show = (sums: TableSums) => JSON.stringify(sums)
  const expected = { ...before, disabledTargets: targets }
  if (before.targets.rows !== targets || before.disabledTargets !== 0) {
    throw new Error(`the rows are not as planned: ${show(before)}`)
  }
  if (show(after) !== show(expected)) {
    throw new Error(`the table must be ${show(expected)}: it is ${show(after)}`)
  }
}
