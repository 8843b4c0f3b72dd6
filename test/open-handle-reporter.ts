// A Jest reporter that stops a run that does not exit: it reports the handles that tests left open,
// with the place that opened them, and fails the run before its timeout.
import { createHook } from 'node:async_hooks'

/** A clean run exits within this time. */
const END_MS_MAX = 30_000
const SHOWN_MAX = 20
const FRAMES_MAX = 4
const FRAMES_KEPT = 40

/** Node.js's names of the handles that can keep a process running; sockets come last. */
const holders = [
  ...['PROCESSWRAP', 'WORKER', 'Timeout', 'TCPSERVERWRAP', 'PIPESERVERWRAP'],
  ...['FSEVENTWRAP', 'STATWATCHER', 'UDPWRAP', 'MESSAGEPORT', 'FSREQCALLBACK', 'FSREQPROMISE'],
  ...['GETADDRINFOREQWRAP', 'TCPCONNECTWRAP', 'PIPECONNECTWRAP', 'HTTP2SESSION', 'TLSWRAP'],
  ...['PIPEWRAP', 'TCPWRAP'],
] as const

interface Resource {
  readonly pid?: number
  /** The delay of a timer, in ms. */
  readonly _idleTimeout?: number
  /** Whether a timer has run or was cleared. */
  readonly _destroyed?: boolean
  /** Returns `undefined` if the handle is closed. */
  hasRef?(): boolean | undefined
}

interface Opened {
  readonly type: string
  readonly resource: WeakRef<Resource>
  readonly at: { stack?: string }
}

/** Jest's reporter. */
export default class OpenHandleReporter {
  readonly #opened = new Map<number, Opened>()

  constructor() {
    const kept = new Set<string>(holders)
    const hook = createHook({
      init: (...[id, type, , resource]: [number, string, number, object]) => {
        if (!kept.has(type)) return
        const at = {}
        const usual = Error.stackTraceLimit
        Error.stackTraceLimit = FRAMES_KEPT
        Error.captureStackTrace(at)
        Error.stackTraceLimit = usual
        this.#opened.set(id, { type, resource: new WeakRef(resource), at })
      },
      destroy: (id) => {
        this.#opened.delete(id)
      },
      trackPromises: false,
    })
    hook.enable()
  }

  onRunComplete(): void {
    const timer = setTimeout(() => {
      const text = leftovers([...this.#opened.values()]).join('\n  ')
      process.stderr.write(`FAILED jest does not exit: tests left these handles open:\n  ${text}\n`)
      process.exit(1)
    }, END_MS_MAX)
    timer.unref()
  }
}

/** The handles that keep this process running: one line for each type and place. */
function leftovers(opened: readonly Opened[]): string[] {
  const counts = new Map<string, number>()
  for (const type of holders) {
    for (const one of opened.filter((other) => other.type === type)) {
      const resource = one.resource.deref()
      if (resource === undefined || isOver(resource)) continue
      const { pid, _idleTimeout: ms } = resource
      const line = `${type} ${JSON.stringify({ pid, ms })} ${placeOf(one.at.stack ?? '')}`
      counts.set(line, (counts.get(line) ?? 0) + 1)
    }
  }
  const lines = [...counts].map(([line, count]) => `${String(count)} × ${line}`)
  return [...lines.slice(0, SHOWN_MAX), `Node.js: ${process.getActiveResourcesInfo().join(' ')}`]
}

/** Whether the handle is closed, or does not keep the process running. */
function isOver(resource: Resource): boolean {
  const holds = resource.hasRef === undefined || resource.hasRef() === true
  return resource._destroyed === true || !holds
}

/** The project's own frames of a stack, or those of packages if it has none. */
function placeOf(stack: string): string {
  const frames = stack.split('\n').slice(1)
  const ofCode = frames.filter((frame) => !/node:|open-handle-reporter|<anonymous>\)/.test(frame))
  const own = ofCode.filter((frame) => !frame.includes('node_modules'))
  return ([own, ofCode].find((some) => some.length > 0) ?? frames)
    .slice(0, FRAMES_MAX)
    .map((frame) => frame.trim())
    .join(' < ')
}
