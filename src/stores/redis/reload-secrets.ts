// Reloads the secrets of a client from their files: when they change, and when Redis rejects the
// credentials or closes a connection.
import type { Cluster, Redis } from 'ioredis'
import { scanFiles, watchFiles } from '../../process/watch-files.ts'
import type { Log } from '../../telemetry/log.ts'
import { AppliedSecrets } from './apply-secrets.ts'
import type { RedisConnectionOptions, SecretFiles } from './connection-options.ts'
import { onEachNode } from './create-client.ts'
import { maskError } from './mask-error.ts'

/**
 * Called once Redis has accepted changed credentials on every open connection, or with the reason
 * why they are not used.
 */
export type OnReload = (problem?: Error) => void

/** Rejected commands that arrive within this time after an authentication share its result. */
const RENEW_EVERY_MS = 20

/** Whether Redis rejected the credentials, requires some, or denied them a command. */
export function isCredentialError(error: unknown): boolean {
  return error instanceof Error && /\b(?:NOAUTH|WRONGPASS|NOPERM)\b/.test(error.message)
}

/** Whether the credentials are valid, but lack the permission for a command. */
function isDenial(error: unknown): error is Error {
  return error instanceof Error && /\bNOPERM\b/.test(error.message)
}

/** Logs reloads of the secrets of `redis`. */
export function logReloads(log: Log, redis: string): OnReload {
  return (err) => {
    if (err === undefined) log.info({ redis }, 'Redis credentials reloaded')
    else log.warn({ err, redis }, 'cannot reload Redis credentials: using the previous ones')
  }
}

/** Reloads of the secrets of one client. */
export class SecretReloads {
  readonly #files: SecretFiles
  readonly #secrets: AppliedSecrets
  readonly #reports: ReturnType<typeof createReports>
  readonly #authenticate: () => Promise<boolean>
  readonly #watch: { stop(): Promise<void> }
  #isStopped = false
  /** Whether the current credentials, with which Redis denied a command, are being retried. */
  #isRetryingCurrent = false
  #renewing: Promise<boolean> | undefined
  #renewed = { atMs: -Infinity, isAccepted: true }

  /** Watches the files until `stop` is called. */
  constructor(given: {
    readonly client: Redis | Cluster
    readonly options: RedisConnectionOptions
    readonly files: SecretFiles
    readonly onReload: OnReload
  }) {
    const { client, options, files, onReload } = given
    this.#files = files
    this.#secrets = new AppliedSecrets(client, options)
    this.#reports = createReports(onReload)
    this.#authenticate = oneAtATime(async () => {
      const { rejection, isAccepted } = await this.#secrets.authenticate()
      if (rejection === undefined) this.#settle()
      else this.#reject(rejection)
      return isAccepted
    })
    const readAndApply = async () => {
      if (this.#readFiles()) await this.#authenticate()
    }
    onEachNode(client, (node) => {
      // Redis may have closed the connection because the credentials have changed.
      node.on('close', () => void readAndApply())
      node.on('ready', () => {
        this.#handleReady(node)
      })
      node.on('error', (error: Error) => {
        this.#handleError(error, node)
      })
    })
    this.#watch = watchFiles({
      scan: () => {
        this.#retryCurrent()
        return scanFiles(files.paths)
      },
      onChange: readAndApply,
      onError: (error) => {
        const problem = error instanceof Error ? error : new Error(String(error))
        if (!this.#isStopped) this.#reports.filesProblem(problem)
      },
    })
  }

  /**
   * Re-reads the files after Redis has rejected a command with this error, and authenticates the
   * open connections. Resolves to whether the command may be retried. Never rejects.
   */
  renew(error: unknown): Promise<boolean> {
    if (this.#isStopped) return Promise.resolve(false)
    if (this.#renewing !== undefined) return this.#renewing
    if (this.#isRenewed()) return Promise.resolve(this.#renewed.isAccepted)
    if (!this.#readFiles() && isDenial(error) && this.#secrets.noteDeniedCommand()) {
      this.#reject(maskError(error))
    }
    this.#renewing = this.#authenticate()
      .then((isAccepted) => {
        this.#renewed = { atMs: performance.now(), isAccepted }
        return isAccepted
      })
      .finally(() => {
        this.#renewing = undefined
      })
    return this.#renewing
  }

  #isRenewed(): boolean {
    return performance.now() - this.#renewed.atMs < RENEW_EVERY_MS
  }

  /** Stops watching the files: nothing is read or reported from here on. */
  stop(): void {
    this.#isStopped = true
    void this.#watch.stop()
  }

  /** Reads the files; returns whether the secrets have changed. */
  #readFiles(): boolean {
    if (this.#isStopped) return false
    try {
      const isChanged = this.#secrets.change(this.#files.read())
      this.#reports.filesRead(isChanged)
      return isChanged
    } catch (error) {
      this.#reports.filesProblem(error as Error) // a ConfigError
      return false
    }
  }

  #settle(): void {
    if (this.#isStopped || this.#isRetryingCurrent || this.#secrets.isCurrentDenied()) return
    if (this.#secrets.isInUse()) this.#reports.accepted()
  }

  #reject(rejection: Error): void {
    if (!this.#isStopped && this.#secrets.hasPrevious()) this.#reports.rejected(rejection)
  }

  #handleReady(node: Redis): void {
    if (this.#isStopped) return
    if (this.#secrets.isOutdated(node)) void this.#authenticate()
    else this.#settle()
  }

  #handleError(error: Error, node: Redis): void {
    if (this.#isStopped || !isCredentialError(error)) return
    // A rejection by the sentinels concerns their own credentials: those of Redis stay in use.
    const isOfSentinels = error.message.startsWith('All sentinels')
    if (this.#readFiles()) void this.#authenticate()
    else if (!isOfSentinels && this.#secrets.noteRejectedHandshake(node))
      this.#reject(maskError(error))
  }

  /** Called at each poll: Redis may accept credentials that it has rejected before. */
  #retryCurrent(): void {
    if (this.#isStopped) return
    if (this.#secrets.isPreviousInUse()) {
      if (this.#renewing !== undefined || this.#isRenewed()) return // the next poll retries
      this.#renewed.atMs = -Infinity // a later denial must not share the earlier result
      this.#isRetryingCurrent = this.#secrets.clearDenialOfCurrent() || this.#isRetryingCurrent
      void this.#authenticate()
    } else if (this.#isRetryingCurrent) {
      this.#isRetryingCurrent = false
      this.#settle()
    }
  }
}

/** Runs a task, but not concurrently: all calls during a run share the run that follows it. */
function oneAtATime<T>(task: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined
  let next: Promise<T> | undefined
  const start = (): Promise<T> => {
    running = task().finally(() => {
      running = undefined
    })
    return running
  }
  return () => {
    if (next !== undefined) return next
    if (running === undefined) return start()
    next = running.then(() => {
      next = undefined
      return start()
    })
    return next
  }
}

/** Reports each problem once, and each acceptance of secrets that were changed or rejected. */
function createReports(onReload: OnReload) {
  let isPending = false
  let reported: string | undefined
  let isOfFiles = false
  const report = (problem: Error, ofFiles: boolean) => {
    if (problem.message === reported) return // commands that fail together have the same problem
    reported = problem.message
    isOfFiles = ofFiles
    onReload(problem)
  }
  return {
    filesRead(isChanged: boolean) {
      if (isChanged || isOfFiles) reported = undefined
      isOfFiles = false
      isPending ||= isChanged
    },
    filesProblem(problem: Error) {
      report(problem, true)
    },
    rejected(problem: Error) {
      isPending = true
      report(problem, false)
    },
    accepted() {
      if (!isPending) return
      isPending = false
      reported = undefined
      onReload()
    },
  }
}
