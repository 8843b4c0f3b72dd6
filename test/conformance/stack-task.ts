// The messages between run-in-stack.ts and stack.ts, which runs in its own namespaces.

/** The commands of a stack, and its environment. */
export interface StackTask {
  /** Tree of the reference: its scripts and its configurations of Envoy, unmodified. */
  readonly reference: string
  /** For logs; each stack has its own. */
  readonly folder: string
  readonly cwd: string
  readonly hostsFile: string
  readonly resolverFile: string
  readonly envoy: string
  readonly statsdExporter: string
  /** Command line of the service under test, and its environment. */
  readonly service: readonly string[]
  readonly serviceEnv: Readonly<Record<string, string>>
  /** Run one after another once the stack is up and told to go. */
  readonly commands: readonly (readonly string[])[]
  readonly commandMsMax: number
}

/** The result of one command. */
export interface Ended {
  /** 0 = well; a text where a signal ended it. */
  readonly exitCode: number | string
  /** The last of what it wrote. */
  readonly output: string
  readonly ms: number
}

/** The report of a stack: that it is ready, that it failed, or the results of the commands. */
export type StackReport =
  | { readonly kind: 'ready' }
  | { readonly kind: 'failed'; readonly why: string }
  | {
      readonly kind: 'done'
      readonly ended: readonly Ended[]
      /** Calls of the service that failed or passed Envoy's 20 ms: Envoy let those through. */
      readonly callsOverDeadline: number
      /** Charges in Redis meanwhile; 0 = the service decided alone, so nothing was shown. */
      readonly charges: number
      readonly isAlive: boolean
      readonly stopped: string
    }
