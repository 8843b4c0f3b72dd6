// Renders the generated files of the chart curtail-ratelimit, whose values are a subset of those of
// the chart curtail. Does no file I/O.
import { isMap, isScalar, parseDocument, type YAMLMap } from 'yaml'
import { format } from 'prettier'

/** The values of the chart curtail that curtail-ratelimit has too, with all values below them. */
const shared = [
  ...['global', 'nameOverride', 'fullnameOverride', 'namespaceOverride'],
  ...['commonLabels', 'commonAnnotations'],
  ...['image', 'imagePullSecrets', 'logLevel', 'dnsSeconds', 'clusterDomain', 'podDefaults'],
  ...['ratelimit.replicas', 'ratelimit.rules', 'ratelimit.existingRules', 'ratelimit.xds'],
  ...['ratelimit.deadlineMs', 'ratelimit.heapMebibytes', 'ratelimit.resources'],
  ...['ratelimit.autoscaling', 'ratelimit.pod', 'counters'],
  ...['networkPolicy.enabled', 'networkPolicy.clients', 'networkPolicy.metricsFrom'],
  ...['networkPolicy.extraEgress', 'podDisruptionBudget'],
  ...['monitoring.namespace', 'monitoring.monitor'],
  ...['serviceAccountAnnotations', 'extraObjects'],
]

/** The comments that differ from those in the chart curtail, by value. */
const comments: Readonly<Record<string, string>> = {
  // An earlier release of curtail has this default of its dependency, which --reuse-values keeps.
  'image.repository': ` A released chart has the name and the digest of the released image. In a
 checkout, the default is the name of the image that \`npm run image\` builds. Your own image also
 requires \`digest: ''\`, because the digest replaces the tag.
 @schema {pattern: '^([a-z0-9][A-Za-z0-9._:/-]*)?$'}`,
  podDefaults: ` Settings of all pods, and of the objects that create them. Each workload has the
 same settings in its own value \`pod\`; these take precedence.
 @schema {definition: pod}`,
  'ratelimit.rules': ` A complete rules file. Pods load a change without a restart.
 If the value is empty, and no other source is set, every request is admitted, and upgrades fail.
 Before an upgrade, a Job checks the rules; if they are invalid, the upgrade fails.
 @schema {type: string}`,
  'networkPolicy.clients': ` NetworkPolicy peers that may call the rate limiter, such as
 Envoy's pods. Empty: all.
 @schema {items: {type: object}}`,
  'podDisruptionBudget.maxUnavailable': ` Maximum number or percentage of unavailable pods.
 @schema {type: [integer, string], minimum: 1, maximum: 1000, pattern: '^([1-9][0-9]?|100)%$'}`,
  serviceAccountAnnotations: ` Annotations of the ServiceAccounts.
 @schema {$ref: '#/definitions/stringMap'}`,
}

const HEADER = ` Values of the chart \`curtail-ratelimit\`. \`npm run render\` renders this file
 from the values of the chart \`curtail\`: change them there.`

const STYLE = { parser: 'yaml', singleQuote: true, printWidth: 100 }

/** Renders values.yaml of curtail-ratelimit from that of curtail. Throws if it is not YAML. */
export async function renderLimiterValues(valuesYaml: string): Promise<string> {
  const document = parseDocument(valuesYaml)
  const [error] = document.errors
  if (error !== undefined) throw error
  if (!isMap(document.contents)) throw new Error('Cannot render the values: no mapping')
  keepShared(document.contents, '')
  document.commentBefore = HEADER
  return format(document.toString({ lineWidth: 0 }), STYLE)
}

/** Deletes all values that are not shared. */
function keepShared(map: YAMLMap, parent: string): void {
  const [first] = map.items
  if (parent === '' && isScalar(first?.key)) {
    // The comment of the first value follows the header of the file.
    first.key.commentBefore = first.key.commentBefore?.split(/\n *\n/).at(-1) ?? null
  }
  map.items = map.items.filter(({ key, value }) => {
    if (!isScalar(key)) return false
    const path = parent === '' ? String(key.value) : `${parent}.${String(key.value)}`
    const isParent = shared.some((one) => one.startsWith(`${path}.`))
    const isShared = isParent || shared.some((one) => one === path || path.startsWith(`${one}.`))
    if (isShared && isMap(value)) keepShared(value, path)
    const comment = comments[path]
    if (comment === undefined) return isShared
    // `yaml` attaches the first comment of a nested map to the map.
    if (key === first?.key && parent !== '') map.commentBefore = comment
    else key.commentBefore = comment
    return isShared
  })
}

/** Chart.yaml of curtail-ratelimit with the versions in that of curtail. */
export function renderLimiterChart(limiterChart: string, chart: string): string {
  return ['version', 'appVersion', 'kubeVersion'].reduce((rendered, field) => {
    const line = new RegExp(`^${field}: .*$`, 'm')
    return rendered.replace(line, line.exec(chart)?.[0] ?? '')
  }, limiterChart)
}
