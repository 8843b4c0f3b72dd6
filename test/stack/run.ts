// `npm run stack`: starts the whole service on this machine and says where everything is; a part
// that dies says so, and Ctrl-C ends all of it and leaves nothing.
import { stopOnSignal } from '../../src/process/stop.ts'
import { canListen } from '../parts/loopback-block.ts'
import { followFiles } from './log-files.ts'
import { isAlive } from './part.ts'
import { OptionError, parseRunOptions, runHelp, type RunOptions } from './run-options.ts'
import { type Stack, startStack } from './start-stack.ts'

const LOOK_EVERY_MS = 500

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
    describe(stack)
    return { stack, quiet: watch(stack, showsLogs) }
  })
  stopOnSignal(
    async () => {
      ending.abort()
      say('stopping')
      const started = await running.catch(() => undefined) // it has ended what it had started
      started?.quiet()
      await started?.stack.stop()
      say('stopped')
      return 0
    },
    (error) => {
      complain(error)
    },
  )
  await running.catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
}

function describe({ parts, url, folder }: Stack): void {
  const widths = [0, 1].map((at) =>
    Math.max(...parts.map((part) => cellsOf(part)[at]?.length ?? 0)),
  )
  for (const part of parts) {
    const cells = cellsOf(part).map((cell, at) => cell.padEnd(widths[at] ?? 0))
    say(`ok  ${cells.join('  ')}`)
  }
  say(`\nlogs in ${folder}\nEnvoy listens at ${url}`)
  const body = `-H 'Content-Type: application/json' -d '{"long_url":"https://example.com/"}'`
  say(`  curl -i ${url}/v1/urls ${body}`)
  say(`  curl -i ${url}/CODE`)
}

function cellsOf({ name, pid, where }: Stack['parts'][number]): string[] {
  return [name, `pid ${String(pid())}`, where]
}

/** Tells of parts that die, and of what is logged if that is wanted; gives what ends that. */
function watch({ parts, logs }: Stack, showsLogs: boolean): () => void {
  const dead = new Set<string>()
  const looking = setInterval(() => {
    for (const { name, pid } of parts) {
      if (dead.has(name) || isAlive(pid())) continue
      dead.add(name)
      say(`${name} (pid ${String(pid())}) has died`)
    }
  }, LOOK_EVERY_MS)
  const unfollow = showsLogs
    ? followFiles(logs, (name, line) => {
        say(`${name} | ${line}`)
      })
    : () => undefined
  return () => {
    clearInterval(looking)
    unfollow()
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
