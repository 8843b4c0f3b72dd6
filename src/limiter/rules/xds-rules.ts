// The rules of the role `ratelimit` from an xDS server: each version replaces the active rules as a
// whole, or is rejected. Opens no connection; the caller passes a function that does.
import { faultFields } from '../../limits/rule-fault.ts'
import type { RuleFault, RuleSet } from '../../limits/rule.ts'
import type { ParsedRuleFiles } from '../../limits/parse-rules.ts'
import type { Stop } from '../../process/stop.ts'
import type { DiscoveryResponse } from '../../protobuf/discovery.ts'
import { createStartPeriod, SLOW_START_MS_MAX } from '../../resilience/start-period.ts'
import { recordActivation, type LoadedRules, type RulesDeps } from './load-rules.ts'
import { createRejectedVersions } from './rejected-versions.ts'
import { rejectionMessage, renderRejection } from './render-rejection.ts'
import { boundCopy, openFallbackVersion, openVersionCopy, writeInBackground } from './rules-copy.ts'
import { versionDigest } from './version-digest.ts'
import { createVersionParser, versionFault, type VersionParser } from './version-parser.ts'

/** A connection to an xDS server. */
interface XdsConnection {
  /** Opens a new stream immediately. */
  reconnect(): void
  stop(): Promise<void>
}

/** Settings and dependencies. */
export interface XdsRulesDeps extends RulesDeps {
  /** The address of the server, for messages. */
  readonly server: string
  /** Ends the wait for the first version. */
  readonly signal: AbortSignal
  /** Connects; the result passes one version after the other to `apply`. */
  readonly connect: (on: {
    /**
     * Resolves to the reason why a version is rejected, or to `undefined`. `superseded` aborts when
     * a newer response arrives or the stream closes.
     */
    readonly apply: Versions['apply']
    /** Called when an attempt to connect has failed, with the level at which it was logged. */
    readonly onFailure: (level: 'info' | 'warn') => void
  }) => XdsConnection
}

/** While no version is active, the stored ones are tried at this interval. */
const RESTORE_INTERVAL_MS = 15_000
const REMINDER_MS = 30_000

/**
 * Connects, and waits for the first valid version, or for a stored one if the server sends none;
 * with FORCE_START_WITHOUT_INITIAL_CONFIG it does not wait. Also returns if `signal` aborts.
 */
export async function openXdsRules(deps: XdsRulesDeps): Promise<LoadedRules> {
  const { config, server, log } = deps
  const versions = createVersions(deps)
  const isForced = config.FORCE_START_WITHOUT_INITIAL_CONFIG
  if (isForced) await versions.restore('info')
  // After an interval without a failed attempt: `warn`, because then the server is connected but
  // sends no version.
  let level: 'info' | 'warn' = 'warn'
  const connection = deps.connect({
    apply: versions.apply,
    onFailure: (given) => {
      level = given
      void versions.restore(given)
    },
  })
  const restoring = setInterval(() => {
    void versions.restore(level)
    level = 'warn'
  }, RESTORE_INTERVAL_MS)
  void versions.active.first.then(() => {
    clearInterval(restoring)
  })
  const onSignal = () => {
    log.info({ server }, 'reconnecting to the xDS server')
    connection.reconnect()
  }
  process.on('SIGHUP', onSignal)
  if (!isForced) await waitForFirst(deps, versions)
  versions.parser.startServing()
  const { rules, state } = versions.active
  return {
    rules,
    state,
    watch(onReloaded): Stop {
      versions.active.onChange(onReloaded)
      return async () => {
        process.off('SIGHUP', onSignal)
        clearInterval(restoring)
        await connection.stop()
        await versions.stop()
      }
    },
  }
}

type Versions = ReturnType<typeof createVersions>

async function waitForFirst(deps: XdsRulesDeps, { active }: Versions): Promise<void> {
  const { server, log, signal } = deps
  const aborted = new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => {
      resolve()
    })
  })
  // The server serves a version once it has started.
  const start = createStartPeriod(SLOW_START_MS_MAX)
  const remind = () => {
    log[start.levelOf(true)]({ server }, 'waiting for the first version of the rules')
  }
  remind()
  const reminder = setInterval(remind, REMINDER_MS)
  await Promise.race([active.first, aborted])
  clearInterval(reminder)
}

type Deps = RulesDeps & Pick<XdsRulesDeps, 'server'>

/** Applies versions, and restores stored ones. */
function createVersions(deps: Deps) {
  const copy = openCopyOf(deps)
  const parser = createVersionParser(deps)
  const rejected = createRejectedVersions()
  const active = createActive(deps)
  /** The digest of the active version; `undefined` if none is active, or if it is a stored one. */
  let activeDigest: string | undefined
  const apply = async (response: DiscoveryResponse, superseded: AbortSignal) => {
    const { version } = response
    const digest = await versionDigest(response)
    if (digest !== activeDigest) {
      const known = await rejected.recall(digest, superseded)
      if (known !== undefined) {
        const { faults, isRetryable } = known
        if (!superseded.aborted) active.reject({ version, faults })
        return { message: renderRejection(faults), isRetryable }
      }
      const { parsed, err } = await attempt(() => parser.parse(response))
      if (parser.isStopped()) return stopping
      if ('faults' in parsed) {
        const { faults } = parsed
        const isRetryable = err !== undefined
        rejected.add(digest, { faults, isRetryable })
        active.reject({ version, faults, err })
        return { message: renderRejection(faults), isRetryable }
      }
      active.activate(parsed.rules)
      activeDigest = digest
      logLoaded(deps, response, parsed)
      copy?.write(response)
    }
    active.accept()
    return undefined
  }
  return {
    apply,
    active,
    restore: createRestore(deps, { copy, parser, active }),
    parser,
    async stop() {
      await parser.stop()
      await copy?.settle()
    },
  }
}

/**
 * Returns a function that activates the first valid stored version, unless one is active, and logs
 * it at `level`: `info` while the server may not have started yet.
 */
function createRestore(
  deps: Deps,
  given: {
    readonly copy: ReturnType<typeof openCopyOf>
    readonly parser: VersionParser
    readonly active: ReturnType<typeof createActive>
  },
): (level: 'info' | 'warn') => Promise<void> {
  const { server, log } = deps
  const { copy, parser, active } = given
  const stored = storedVersions(deps, copy)
  let restoring: Promise<void> | undefined
  const readStored = async (level: 'info' | 'warn') => {
    for (const { source, read } of stored) {
      const response = await read()
      if (response === undefined) continue
      const { parsed } = await attempt(() => parser.parse(response))
      if (active.state().isLoaded || parser.isStopped()) return
      const fields = { server, source, version: response.version }
      if ('faults' in parsed) {
        log.warn(
          { ...fields, ...faultFields(parsed.faults) },
          `the ${source} of the rules has faults`,
        )
        continue
      }
      active.activate(parsed.rules)
      const message = 'last valid rules loaded: the xDS server has sent no valid version yet'
      log[level]({ ...fields, domains: parsed.rules.size }, message)
      return
    }
  }
  return async (level) => {
    if (active.state().isLoaded) return
    restoring ??= readStored(level).finally(() => {
      restoring = undefined
    })
    await restoring
  }
}

const stopping = { message: 'the process is stopping', isRetryable: false }

/** Holds the active rules, and the faults of the newest version. */
function createActive(deps: Deps) {
  const { server, stats, log } = deps
  const first = Promise.withResolvers<undefined>()
  let rules: RuleSet = new Map()
  let loadedAtMs: number | undefined
  let faults: readonly RuleFault[] = [
    versionFault('no valid version has been received since the start', `xDS server ${server}`),
  ]
  let rejectedVersion: string | undefined
  let onChange: () => void = () => undefined
  return {
    /** Resolves when rules have become active. */
    first: first.promise,
    activate(loaded: RuleSet) {
      rules = loaded
      loadedAtMs = Date.now()
      recordActivation(deps, rules)
      first.resolve(undefined)
      onChange()
    },
    /** The newest version is active. */
    accept() {
      faults = []
      onChange()
    },
    /** The newest version has faults; `err` is the error of the parser, if it failed. */
    reject(given: {
      readonly version: string
      readonly faults: readonly RuleFault[]
      readonly err?: Error | undefined
    }) {
      const { version, err } = given
      if (given.faults === faults && version === rejectedVersion) return // re-sent
      faults = given.faults
      rejectedVersion = version
      stats.service.configLoadError++
      const message = rejectionMessage(loadedAtMs !== undefined)
      log.error({ server, version, ...faultFields(faults), ...(err && { err }) }, message)
      onChange()
    },
    rules: () => rules,
    state: () => {
      const isLoaded = loadedAtMs !== undefined
      return { isLoaded, domains: rules.size, loadedAtMs, faults }
    },
    onChange(listener: () => void) {
      onChange = listener
    },
  }
}

function openCopyOf({ config, log }: RulesDeps) {
  const { RULES_COPY: path } = config
  return path === '' ? undefined : writeInBackground(boundCopy(openVersionCopy(path, log), log))
}

/** Versions to use without the server, in this order; the copy is what this pod applied last. */
function storedVersions({ config, log }: RulesDeps, copy: ReturnType<typeof openCopyOf>) {
  const { XDS_FALLBACK_VERSION: path } = config
  const fallback = path === '' ? undefined : openFallbackVersion(path, log)
  return [
    ...(copy === undefined ? [] : [{ source: 'copy', read: () => copy.read() }]),
    ...(fallback === undefined ? [] : [{ source: 'fallback version', read: fallback.read }]),
  ]
}

/** The result of a parse. An error of the parser is a fault, too; a retry may succeed. */
async function attempt(parse: () => Promise<ParsedRuleFiles>) {
  try {
    return { parsed: await parse(), err: undefined }
  } catch (error) {
    const err = error instanceof Error ? error : new Error(String(error))
    return { parsed: { faults: [versionFault(err.message)] }, err }
  }
}

function logLoaded(
  { server, log }: Pick<XdsRulesDeps, 'server' | 'log'>,
  { version, resources }: DiscoveryResponse,
  { rules, warnings }: Extract<ParsedRuleFiles, { readonly rules: RuleSet }>,
): void {
  log.info({ server, version, domains: rules.size }, 'rules loaded')
  if (warnings.length > 0)
    log.warn({ server, version, ...faultFields(warnings) }, 'rules loaded with warnings')
  if (resources.length === 0)
    log.warn({ server, version }, 'the version has no resources: no rules are active')
}
