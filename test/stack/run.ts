// `npm run stack`: starts the whole service on this machine and prints where everything is; parts
// that died are restarted on SIGUSR2, and Ctrl-C stops all of it and leaves nothing.
import { stopOnSignal } from '../../src/process/stop.ts'
import { canListen } from '../parts/loopback-block.ts'
import { followFiles } from './log-files.ts'
import { describeStack } from './describe-stack.ts'
import { OptionError, parseRunOptions, runHelp, type RunOptions } from './run-options.ts'
import { type Stack, startStack } from './start-stack.ts'
import { supervise } from './supervise.ts'

/** Restarts what has died; a signal, as reading a terminal would stop a stack in the background. */
const RESTART_SIGNAL = 'SIGUSR2'
const restartCommand = `kill -USR2 ${String(process.pid)}`
/** Databases take their time to stop; what was abandoned would stay behind. */
const STOP_MS_MAX = 120_000

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

async function run({ isSmall, showsLogs, port, trustedHops, codes }: RunOptions): Promise<void> {
  if (!(await canListen({ address: '127.0.0.1', port }))) {
    throw new Error(`port ${String(port)} is in use: choose another by --port`)
  }
  const ending = new AbortController()
  const cassandraNodes = isSmall ? 1 : 3
  const { signal } = ending
  const starting = startStack({ cassandraNodes, codes, port, trustedHops, signal, onStep: say })
  const running = starting.then((stack) => {
    for (const line of describeStack(stack, restartCommand)) say(line)
    return { stack, quiet: watch(stack, showsLogs) }
  })
  stopOnSignal({
    stop: async () => {
      ending.abort()
      say('stopping')
      const started = await running.catch(() => undefined) // it has ended what it had started
      await started?.quiet()
      await started?.stack.stop()
      say('stopped')
      return 0
    },
    onFailure: complain,
    onTimeout: (ms) => {
      say(`not stopped within ${String(ms)} ms: exiting`)
    },
    msMax: () => STOP_MS_MAX,
  })
  await running.catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
}

/** Follows parts that die, and the logs if that is wanted; returns what ends that. */
function watch({ parts, logs }: Stack, showsLogs: boolean): () => Promise<void> {
  const supervisor = supervise({ parts, how: restartCommand, say })
  const restart = () => void supervisor.restartDead()
  process.on(RESTART_SIGNAL, restart)
  const unfollow = showsLogs
    ? followFiles(logs, (name, line) => {
        say(`${name} | ${line}`)
      })
    : () => undefined
  return async () => {
    process.off(RESTART_SIGNAL, restart)
    unfollow()
    await supervisor.stop()
  }
}

function complain(error: unknown): void {
  process.stderr.write(`curtail: ${error instanceof Error ? error.message : String(error)}\n`)
}

try {
  const options = parseRunOptions(process.argv.slice(2))
  if (options === 'help') process.stdout.write(runHelp)
  else await run(options)
} catch (error) {
  complain(error)
  process.exit(error instanceof OptionError ? 2 : 1)
}
