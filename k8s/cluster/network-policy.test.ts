// NetworkPolicies as iptables chains: which peers and ports they allow, and that they reject
// others.
import { expect, test } from '@jest/globals'
import { subtractRanges } from './address-range.ts'
import { ENTRY_CHAIN, isSelected, type Objects, planChains, type Pod } from './network-policy.ts'

const REJECT = '-j REJECT --reject-with icmp-admin-prohibited'

function podOf(name: string, address: string, given: { namespace?: string } & Partial<Pod> = {}) {
  const { namespace = 'shop', ...rest } = given
  return {
    metadata: { name, namespace, labels: { app: name } },
    spec: {
      containers: [{ ports: [{ name: 'http', containerPort: 8080 }, { containerPort: 9090 }] }],
    },
    status: { podIP: address, phase: 'Running' },
    ...rest,
  }
}

const namespaces = [
  { metadata: { name: 'shop' } },
  { metadata: { name: 'watch', labels: { team: 'ops' } } },
]

type Spec = Objects['policies'][number]['spec']
const policyOf = (spec: Spec) => ({ metadata: { name: 'p', namespace: 'shop' }, spec })

/** The rules of every chain but the first, without the rules for traffic of a pod to itself. */
function rulesOf(pods: readonly Pod[], ...specs: readonly Spec[]): readonly string[][] {
  const chains = planChains({ pods, namespaces, policies: specs.map(policyOf) })
  return [...chains]
    .filter(([name]) => name !== ENTRY_CHAIN)
    .map(([, rules]) => rules.filter((rule) => !/^-s (\S+) -d \1 /.test(rule)))
}

test('a selector selects by labels and by expressions; an empty one selects all', () => {
  const labels = { app: 'a' }
  const by = (operator: string, values?: string[], key = 'app') =>
    isSelected({ matchExpressions: [{ key, operator, ...(values && { values }) }] }, labels)
  expect(isSelected({}, labels)).toBe(true)
  expect(isSelected({ matchLabels: { app: 'b' } }, labels)).toBe(false)
  expect([by('In', ['a']), by('In', ['b']), by('In', ['a'], 'no')]).toEqual([true, false, false])
  expect([by('NotIn', ['a']), by('NotIn', ['b']), by('NotIn', ['a'], 'no')]).toEqual([
    false,
    true,
    true,
  ])
  expect([by('Exists'), by('DoesNotExist'), by('DoesNotExist', [], 'no')]).toEqual([
    true,
    false,
    true,
  ])
})

test('without a policy there is only the rule for established connections', () => {
  const chains = planChains({ pods: [podOf('a', '10.0.0.1')], namespaces, policies: [] })
  const established = '-m conntrack --ctstate RELATED,ESTABLISHED -j RETURN'
  expect([...chains]).toEqual([[ENTRY_CHAIN, [established]]])
})

test('a policy without rules rejects all traffic except from the pod to itself', () => {
  const pods = [podOf('a', '10.0.0.1')]
  const policies = [policyOf({ policyTypes: ['Ingress', 'Egress'] })]
  const chains = [...planChains({ pods, namespaces, policies })]
  expect(chains.slice(1).map(([, rules]) => rules)).toEqual([
    ['-s 10.0.0.1 -d 10.0.0.1 -j RETURN', REJECT],
    ['-s 10.0.0.1 -d 10.0.0.1 -j RETURN', REJECT],
  ])
  const jumps = chains[0]?.[1].slice(1).map((jump) => jump.replace(/-j .*-([EI])-.*/, '$1'))
  expect(jumps).toEqual(['-s 10.0.0.1 E', '-d 10.0.0.1 I'])
  expect(chains.every(([name]) => name.length <= 28)).toBe(true)
})

test("peers are pods of the policy's namespace, or of the selected namespaces", () => {
  const pods = [
    podOf('a', '10.0.0.1'),
    podOf('b', '10.0.0.2'),
    podOf('b', '10.0.0.3', { namespace: 'watch' }),
  ]
  const from = (peer: object) => ({
    podSelector: { matchLabels: { app: 'a' } },
    policyTypes: ['Ingress'],
    ingress: [{ from: [peer] }],
  })
  const podSelector = { matchLabels: { app: 'b' } }
  const namespaceSelector = { matchLabels: { team: 'ops' } }
  expect(rulesOf(pods, from({ podSelector }))).toEqual([['-s 10.0.0.2  -j RETURN', REJECT]])
  expect(rulesOf(pods, from({ podSelector, namespaceSelector }))).toEqual([
    ['-s 10.0.0.3  -j RETURN', REJECT],
  ])
  expect(rulesOf(pods, from({ namespaceSelector: {} }))[0]?.length).toBe(4)
})

test('ports are numbers, ranges, or port names of the serving pod', () => {
  const pods = [podOf('a', '10.0.0.1'), podOf('b', '10.0.0.2')]
  const ports = [{ port: 'http' }, { port: 90, endPort: 99, protocol: 'UDP' }, { port: 'no' }]
  const all = [...ports, { protocol: 'SCTP' }]
  const podSelector = { matchLabels: { app: 'a' } }
  const inward = { podSelector, policyTypes: ['Ingress'], ingress: [{ ports: all }] }
  expect(rulesOf(pods, inward)).toEqual([
    [
      '-p tcp --dport 8080 -j RETURN',
      '-p udp --dport 90:99 -j RETURN',
      '-p sctp -j RETURN',
      REJECT,
    ],
  ])
  const outward = { podSelector, policyTypes: ['Egress'], egress: [{ ports: [{ port: 'http' }] }] }
  const served = ['10.0.0.1', '10.0.0.2'].map((address) => `-d ${address} -p tcp --dport 8080`)
  expect(rulesOf(pods, outward)).toEqual([[...served.map((match) => `${match} -j RETURN`), REJECT]])
})

test('an ipBlock may have exceptions', () => {
  const egress = [{ to: [{ ipBlock: { cidr: '10.0.0.0/8', except: ['10.128.0.0/9'] } }] }]
  const rules = rulesOf([podOf('a', '10.0.0.1')], { policyTypes: ['Egress'], egress })
  expect(rules).toEqual([['-d 10.0.0.0/9  -j RETURN', REJECT]])
})

test('subtracting ranges returns the complete remainder in the fewest ranges', () => {
  expect(subtractRanges('10.0.0.0/30', ['10.0.0.1/32'])).toEqual(['10.0.0.0/32', '10.0.0.2/31'])
  expect(subtractRanges('0.0.0.0/0', ['0.0.0.0/1', '192.0.0.0/2'])).toEqual(['128.0.0.0/2'])
  expect(subtractRanges('10.0.0.0/8', ['11.0.0.0/8'])).toEqual(['10.0.0.0/8'])
  expect(subtractRanges('10.0.0.0/8', ['0.0.0.0/0'])).toEqual([])
  expect(subtractRanges('::/0', [])).toEqual([])
})

test('pods that have terminated, lack an address or use the host network have no chain', () => {
  const pods = [
    podOf('a', '10.0.0.1', { status: { podIP: '10.0.0.1', phase: 'Succeeded' } }),
    podOf('b', '10.0.0.2', { spec: { hostNetwork: true, containers: [] } }),
    podOf('c', '', { status: { phase: 'Pending' } }),
  ]
  expect(rulesOf(pods, { policyTypes: ['Ingress'] })).toEqual([])
})
