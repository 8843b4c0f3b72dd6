// The rules of the role `ratelimit` from an xDS server: each version replaces the active rules as a
// whole, or is rejected. Opens no connection; the caller passes a function that does.
import { faultFields } from '../../limits/rule-fault.ts'
import type { RuleFault, RuleSet } from '../../limits/rule.ts'
import type { ParsedRuleFiles } from '../../limits/rules.ts'
import type { Stop } from '../../process/stop.ts'
import type { DiscoveryResponse } from '../../protobuf/discovery.ts'
import { declareLoaded, type LoadedRules, type RulesDeps } from './load-rules.ts'
import { createRejectedVersions } from './rejected-versions.ts'
import { renderRejection } from './render-rejection.ts'
import { boundCopy, openVersionCopy, writeInBackground } from './rules-copy.ts'
import { versionDigest } from './version-digest.ts'
import { createVersionParser, versionFault } from './version-parser.ts'

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
    /** Called when an attempt to connect has failed. */
    readonly onFailure: () => void
  }) => XdsConnection
}

/** After this time without a version, the copy of the last one is used. */
const FIRST_VERSION_MS_MAX = 15_000
const REMINDER_MS = 30_000

/**
 * Connects, and waits for the first valid version, or for a copy of the last one if the server has
 * none; with FORCE_START_WITHOUT_INITIAL_CONFIG it does not wait. Also returns if `signal` aborts.
 */
export async function openXdsRules(deps: XdsRulesDeps): Promise<LoadedRules> {
  const { config, server, log } = deps
  const versions = createVersions(deps)
  const isForced = config.FORCE_START_WITHOUT_INITIAL_CONFIG
  if (isForced) await versions.restore()
  const connection = deps.connect({
    apply: versions.apply,
    onFailure: () => {
      void versions.restore()
    },
  })
  const onSignal = () => {
    log.info({ server }, 'reconnecting to the xDS server')
    connection.reconnect()
  }
  process.on('SIGHUP', onSignal)
  if (!isForced) await waitForFirst(deps, versions)
  versions.parser.serve()
  const { rules, state } = versions.active
  return {
    rules,
    state,
    watch(onReloaded): Stop {
      versions.active.onChange(onReloaded)
      return async () => {
        process.off('SIGHUP', onSignal)
        await connection.stop()
        await versions.stop()
      }
    },
  }
}

type Versions = ReturnType<typeof createVersions>

async function waitForFirst(deps: XdsRulesDeps, { active, restore }: Versions): Promise<void> {
  const { server, log, signal } = deps
  const aborted = new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => {
      resolve()
    })
  })
  const remind = () => {
    log.warn({ server }, 'waiting for the first version of the rules')
  }
  log.info({ server }, 'waiting for the first version of the rules')
  const reminder = setInterval(remind, REMINDER_MS)
  const restoring = setTimeout(() => void restore(), FIRST_VERSION_MS_MAX)
  await Promise.race([active.first, aborted])
  clearInterval(reminder)
  clearTimeout(restoring)
}

type Deps = RulesDeps & Pick<XdsRulesDeps, 'server'>

/** Applies versions, and restores the copy. */
function createVersions(deps: Deps) {
  const { server, log } = deps
  const copy = openCopyOf(deps)
  const parser = createVersionParser(deps)
  const rejected = createRejectedVersions()
  const active = createActive(deps)
  /** Of the active version, if the server sent it to this process. */
  let activeDigest: string | undefined
  let restoring: Promise<void> | undefined
  const apply = async (response: DiscoveryResponse, superseded: AbortSignal) => {
    const { version } = response
    const digest = await versionDigest(response)
    if (digest !== activeDigest) {
      const known = await rejected.recall(digest, superseded)
      if (known !== undefined) {
        if (!superseded.aborted) active.reject({ version, faults: known })
        return renderRejection(known)
      }
      const { parsed, err } = await attempt(() => parser.parse(response))
      if (parser.isStopped()) return 'the process is stopping'
      if ('faults' in parsed) {
        const { faults } = parsed
        rejected.add(digest, { faults, isRetryable: err !== undefined })
        active.reject({ version, faults, err })
        return renderRejection(faults)
      }
      active.activate(parsed.rules)
      activeDigest = digest
      logLoaded(deps, response, parsed)
      copy?.write(response)
    }
    rejected.resetDelays()
    active.accept()
    return undefined
  }
  const readCopy = async () => {
    const response = await copy?.read()
    if (response === undefined) return
    const { parsed } = await attempt(() => parser.parse(response))
    if (active.state().isLoaded || parser.isStopped()) return
    const fields = { server, version: response.version }
    if ('faults' in parsed) {
      log.warn({ ...fields, ...faultFields(parsed.faults) }, 'the copy of the rules has faults')
      return
    }
    active.activate(parsed.rules)
    const message = 'last good rules loaded: the xDS server has sent no valid version yet'
    log.warn({ ...fields, domains: parsed.rules.size }, message)
  }
  return {
    apply,
    active,
    /** Activates the copy, unless a version is active; at most once. */
    restore: () => (active.state().isLoaded ? Promise.resolve() : (restoring ??= readCopy())),
    parser,
    async stop() {
      await parser.stop()
      await copy?.settle()
    },
  }
}

/** Holds the active rules, and the faults of the newest version. */
function createActive(deps: Deps) {
  const { server, stats, log } = deps
  const first = Promise.withResolvers<undefined>()
  let rules: RuleSet = new Map()
  let loadedAtMs: number | undefined
  let faults: readonly RuleFault[] = [
    versionFault('no valid version was received since the start', `xDS server ${server}`),
  ]
  let rejectedVersion: string | undefined
  let onChange: () => void = () => undefined
  return {
    /** Resolves when rules have become active. */
    first: first.promise,
    activate(loaded: RuleSet) {
      rules = loaded
      loadedAtMs = Date.now()
      declareLoaded(deps, rules)
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
      const message = 'rules rejected: the previous ones stay active'
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

/** The result of a parse. An error of the parser is a fault that a later attempt may not have. */
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
