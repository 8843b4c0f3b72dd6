// Parses versions of an xDS server: large ones in a thread.
import { requireDomain } from '../../limits/require-domain.ts'
import type { RuleFault } from '../../limits/rule.ts'
import { parseRules, type ParsedRuleFiles } from '../../limits/parse-rules.ts'
import { type DiscoveryResponse, RESOURCES_MAX } from '../../protobuf/discovery.ts'
import { parseOptionsOf, type RulesDeps } from './load-rules.ts'
import { createThreadParser } from './parse-in-thread.ts'

/** The type of the resources. */
export const RULES_TYPE_URL = 'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig'

/** A parser. */
export interface VersionParser {
  /** Throws an error if the thread fails or times out. */
  parse(response: DiscoveryResponse): Promise<ParsedRuleFiles>
  /**
   * Called before the process serves calls. From then on, the main thread parses only versions of
   * at most MAIN_THREAD_BYTES_MAX.
   */
  startServing(): void
  /** Aborts the parses that run in a thread. Later ones in a thread throw an error. */
  stop(): Promise<void>
  isStopped(): boolean
}

/** A version of at most this size is parsed in the main thread, in less than 5 ms. */
const MAIN_THREAD_BYTES_MAX = 8 * 1024
/** The same, before the process serves calls: a thread would need additional heap. */
const START_BYTES_MAX = 256 * 1024
const VERSION = 'the version'

/** Creates the parser. */
export function createVersionParser(deps: RulesDeps): VersionParser {
  const options = parseOptionsOf(deps)
  const thread = createThreadParser(options)
  let bytesMax = START_BYTES_MAX
  let isStopped = false
  return {
    async parse(response) {
      const faults = faultsOf(response)
      if (faults.length > 0) return { faults }
      const resources = response.resources.map(({ bytes }, index) => ({ index, bytes }))
      const inThread = response.message.length > bytesMax
      const parsed = inThread ? await thread.parse(resources) : parseRules(resources, options)
      const domain = deps.config.REQUIRED_DOMAIN
      return requireDomain(parsed, { domain, place: VERSION, path: '' })
    },
    startServing() {
      bytesMax = MAIN_THREAD_BYTES_MAX
    },
    stop() {
      isStopped = true
      return thread.stop()
    },
    isStopped: () => isStopped,
  }
}

/** The faults of the version itself. */
function faultsOf({ typeUrl, resources }: DiscoveryResponse): readonly RuleFault[] {
  const faultFor = (place: string, type: string) =>
    versionFault(
      `the type must be ${RULES_TYPE_URL}: it is ${JSON.stringify(type.slice(0, 200))}`,
      place,
    )
  if (typeUrl !== RULES_TYPE_URL) return [faultFor(VERSION, typeUrl)]
  if (resources.length > RESOURCES_MAX) {
    return [versionFault(`a version must have at most ${RESOURCES_MAX} resources: it has more`)]
  }
  return resources.flatMap(({ typeUrl: type }, index) =>
    type === RULES_TYPE_URL ? [] : [faultFor(`resources[${index}]`, type)],
  )
}

/** A fault of a version, or of another place. */
export function versionFault(message: string, place = VERSION): RuleFault {
  return { file: place, line: 1, path: '', message }
}
