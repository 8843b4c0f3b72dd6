// Translates the NetworkPolicies of the single-node test cluster to iptables chains. Pure: API
// objects in, chains out. Traffic from the node to its pods is not filtered, as the API specifies;
// other traffic is rejected with an ICMP error, so that no test waits for a timeout.
import { createHash } from 'node:crypto'
import { subtractRanges } from './address-range.ts'

/** A selector of labels; an empty one selects everything. */
export interface Selector {
  readonly matchLabels?: Readonly<Record<string, string>>
  readonly matchExpressions?: readonly {
    readonly key: string
    readonly operator: string
    readonly values?: readonly string[]
  }[]
}

interface Metadata {
  readonly name: string
  readonly namespace?: string
  readonly labels?: Readonly<Record<string, string>>
}

/** The fields of a pod that the chains depend on. */
export interface Pod {
  readonly metadata: Metadata
  readonly spec: {
    readonly hostNetwork?: boolean
    readonly containers: readonly {
      readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[]
    }[]
  }
  readonly status: { readonly podIP?: string; readonly phase?: string }
}

/** The fields of a namespace that the chains depend on. */
export interface Namespace {
  readonly metadata: Metadata
}

interface Port {
  readonly protocol?: string
  readonly port?: number | string
  readonly endPort?: number
}

interface Peer {
  readonly ipBlock?: { readonly cidr: string; readonly except?: readonly string[] }
  readonly podSelector?: Selector
  readonly namespaceSelector?: Selector
}

interface Rule {
  readonly ports?: readonly Port[]
  readonly from?: readonly Peer[]
  readonly to?: readonly Peer[]
}

/** The fields of a NetworkPolicy that the chains depend on. */
export interface Policy {
  readonly metadata: Metadata
  readonly spec: {
    readonly podSelector?: Selector
    readonly policyTypes: readonly string[]
    readonly ingress?: readonly Rule[]
    readonly egress?: readonly Rule[]
  }
}

/** The objects that determine the chains. */
export interface Objects {
  readonly pods: readonly Pod[]
  readonly namespaces: readonly Namespace[]
  readonly policies: readonly Policy[]
}

/** Chains by name, each with its rules without `-A NAME`; packets enter the first chain. */
export type Chains = ReadonlyMap<string, readonly string[]>

/** The chain that packets are sent to. */
export const ENTRY_CHAIN = 'CURTAIL-POLICY'
/** The prefix of the other chains' names. */
export const CHAIN_PREFIX = 'CURTAIL-'
const REJECT = '-j REJECT --reject-with icmp-admin-prohibited'

const directions = [
  { type: 'Egress', own: '-s', other: '-d' },
  { type: 'Ingress', own: '-d', other: '-s' },
] as const
type Direction = (typeof directions)[number]

interface LivePod {
  readonly pod: Pod
  readonly address: string
}

/** Whether a selector selects an object with these labels. */
export function isSelected(
  { matchLabels = {}, matchExpressions = [] }: Selector,
  labels: Readonly<Record<string, string>> = {},
): boolean {
  const hasLabels = Object.entries(matchLabels).every(([key, value]) => labels[key] === value)
  const fits = matchExpressions.every(({ key, operator, values = [] }) => {
    const value = labels[key]
    if (operator === 'Exists') return value !== undefined
    if (operator === 'DoesNotExist') return value === undefined
    const isIn = value !== undefined && values.includes(value)
    return operator === 'In' ? isIn : !isIn
  })
  return hasLabels && fits
}

/** The chains that the objects require. */
export function planChains(objects: Objects): Chains {
  const { policies } = objects
  const live = objects.pods.flatMap((pod) => {
    const address = pod.status.podIP
    const isTerminated = ['Succeeded', 'Failed'].includes(pod.status.phase ?? '')
    return address === undefined || isTerminated || pod.spec.hostNetwork === true
      ? []
      : [{ pod, address }]
  })
  const entry = ['-m conntrack --ctstate RELATED,ESTABLISHED -j RETURN']
  const chains = new Map<string, readonly string[]>()
  for (const direction of directions) {
    for (const one of live) {
      const applying = policies.filter((policy) => applies(policy, one.pod, direction))
      if (applying.length === 0) continue
      const name = chainOf(one.pod, direction)
      const allowed = applying.flatMap((policy) =>
        matchesOf({ policy, direction, one, live, objects }),
      )
      const itself = `-s ${one.address} -d ${one.address}`
      const returns = [...new Set([itself, ...allowed])].map((match) => `${match} -j RETURN`)
      chains.set(name, [...returns.map((rule) => rule.trim()), REJECT])
      entry.push(`${direction.own} ${one.address} -j ${name}`)
    }
  }
  return new Map([[ENTRY_CHAIN, entry], ...chains])
}

function applies({ metadata, spec }: Policy, pod: Pod, { type }: Direction): boolean {
  const isInScope = metadata.namespace === pod.metadata.namespace && spec.policyTypes.includes(type)
  return isInScope && isSelected(spec.podSelector ?? {}, pod.metadata.labels)
}

/** The chain's name, of at most 28 characters, the limit of iptables. */
function chainOf({ metadata }: Pod, { type }: Direction): string {
  const whole = `${metadata.namespace ?? ''}/${metadata.name}`
  const hash = createHash('sha256').update(whole).digest('hex').slice(0, 16)
  return `${CHAIN_PREFIX}${type.charAt(0)}-${hash}`
}

interface Given {
  readonly policy: Policy
  readonly direction: Direction
  readonly one: LivePod
  readonly live: readonly LivePod[]
  readonly objects: Objects
}

/** The traffic that a policy allows for the pod in one direction, as iptables matches. */
function matchesOf(given: Given): readonly string[] {
  const { policy, direction } = given
  const isEgress = direction.type === 'Egress'
  const rules = isEgress ? policy.spec.egress : policy.spec.ingress
  return (rules ?? []).flatMap((rule) => {
    const peers = isEgress ? rule.to : rule.from
    const ports = rule.ports ?? []
    if (peers === undefined || peers.length === 0) return anyPeer(ports, given)
    return peers.flatMap((peer) => onePeer(peer, ports, given))
  })
}

/** Matches any peer; a named port of an egress rule is resolved for each pod. */
function anyPeer(ports: readonly Port[], given: Given): readonly string[] {
  if (given.direction.type === 'Ingress') return portMatches(ports, given.one.pod)
  const numbered = ports.filter(({ port }) => typeof port !== 'string')
  const named = ports.filter(({ port }) => typeof port === 'string')
  const pods = named.length === 0 ? [] : given.live
  const toPods = pods.flatMap(({ pod, address }) =>
    portMatches(named, pod).map((match) => `-d ${address} ${match}`),
  )
  const isAnyPort = numbered.length === 0 && named.length > 0
  return [...(isAnyPort ? [] : portMatches(numbered, undefined)), ...toPods]
}

function onePeer(peer: Peer, ports: readonly Port[], given: Given): readonly string[] {
  const { direction, one } = given
  const isIngress = direction.type === 'Ingress'
  if (peer.ipBlock !== undefined) {
    const ranges = subtractRanges(peer.ipBlock.cidr, peer.ipBlock.except ?? [])
    const matches = portMatches(ports, isIngress ? one.pod : undefined)
    return ranges.flatMap((range) => matches.map((match) => `${direction.other} ${range} ${match}`))
  }
  return podsOf(peer, given).flatMap(({ pod, address }) =>
    portMatches(ports, isIngress ? one.pod : pod).map(
      (match) => `${direction.other} ${address} ${match}`,
    ),
  )
}

function podsOf(peer: Peer, { policy, live, objects }: Given): readonly LivePod[] {
  const { namespaceSelector } = peer
  const isInNamespace = (namespace: string | undefined) => {
    if (namespaceSelector === undefined) return namespace === policy.metadata.namespace
    const found = objects.namespaces.find(({ metadata }) => metadata.name === namespace)
    return found !== undefined && isSelected(namespaceSelector, found.metadata.labels)
  }
  return live.filter(
    ({ pod }) =>
      isInNamespace(pod.metadata.namespace) &&
      isSelected(peer.podSelector ?? {}, pod.metadata.labels),
  )
}

/** Ports as matches; names are resolved in `pod`, which serves them. No ports means all ports. */
function portMatches(ports: readonly Port[], pod: Pod | undefined): readonly string[] {
  if (ports.length === 0) return ['']
  return ports.flatMap(({ protocol = 'TCP', port, endPort }) => {
    const match = `-p ${protocol.toLowerCase()}`
    if (port === undefined) return [match]
    if (typeof port === 'number') {
      return [`${match} --dport ${port}${endPort === undefined ? '' : `:${endPort}`}`]
    }
    const served = pod?.spec.containers.flatMap(({ ports: all }) => all ?? []) ?? []
    const named = served.filter(({ name }) => name === port)
    return named.map(({ containerPort }) => `${match} --dport ${containerPort}`)
  })
}
