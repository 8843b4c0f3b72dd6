// The messages between run-in-stack.ts and stack.ts, which runs in its own namespaces.

/** The commands of a stack, and its environment. */
export interface StackTask {
  /** The reference's source tree: its scripts and Envoy configurations, unmodified. */
  readonly reference: string
  /** The folder for logs; each stack has its own. */
  readonly folder: string
  readonly cwd: string
  readonly hostsFile: string
  readonly resolverFile: string
  readonly envoy: string
  readonly statsdExporter: string
  /** The command line and the environment of the service under test. */
  readonly service: readonly string[]
  readonly serviceEnv: Readonly<Record<string, string>>
  /** The stack runs them one after another after the `go` message. */
  readonly commands: readonly (readonly string[])[]
  readonly commandMsMax: number
}

/** The result of one command. */
export interface CommandResult {
  /** 0 = success; a string if a signal killed the command. */
  readonly exitCode: number | string
  /** The last characters of its output. */
  readonly output: string
  readonly ms: number
}

/** The report of a stack: that it is ready, that it failed, or the results of the commands. */
export type StackReport =
  | { readonly kind: 'ready' }
  | { readonly kind: 'failed'; readonly reason: string }
  | {
      readonly kind: 'done'
      readonly commandResults: readonly CommandResult[]
      /** Calls of the service that failed or exceeded Envoy's 20 ms: Envoy admitted them. */
      readonly callsTimedOut: number
      /** Hits counted in Redis during the commands; 0 = the service decided without Redis. */
      readonly hits: number
      readonly isAlive: boolean
      readonly stopped: string
    }
