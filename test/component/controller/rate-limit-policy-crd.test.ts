// RateLimitPolicies on a real API server: the specs that it accepts and rejects, the defaults, what
// kubectl prints, and the ClusterRoles for users.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import type { KubeApi } from '../../../src/kube/api.ts'
import {
  RATE_LIMIT_POLICIES,
  type RateLimitPolicy,
} from '../../../src/kube/rate-limit-policy/rate-limit-policy.ts'
import { compile } from '../../../src/policies/compile.ts'
import { type KubeApiserver, startKubeApiserver } from '../../dependencies/kube-apiserver.ts'
import { applyCrd, CODE_POOLS_CRD, RATE_LIMIT_POLICIES_CRD } from '../../kit/kube/apply-crd.ts'

const START_MS_MAX = 40 * 60_000 // includes the build of Kubernetes
const KUBECTL_MS_MAX = 30_000
const { apiVersion, kind, plural } = RATE_LIMIT_POLICIES
const PATH = `/apis/${apiVersion}/namespaces/n/${plural}`

let server: KubeApiserver
let admin: KubeApi

const kubectl = async (...args: readonly string[]) => {
  const program = join(server.programs, 'kubectl')
  const all = ['--kubeconfig', server.kubeconfig, '-n', 'n', ...args]
  return (await promisify(execFile)(program, all, { timeout: KUBECTL_MS_MAX })).stdout
}

beforeAll(async () => {
  server = await startKubeApiserver((line) => process.stdout.write(`${line}\n`))
  admin = server.as('admin')
  await Promise.all([
    applyCrd(admin, CODE_POOLS_CRD),
    applyCrd(admin, RATE_LIMIT_POLICIES_CRD),
    kubectl('create', 'namespace', 'n'),
  ])
}, START_MS_MAX)

afterAll(async () => {
  await server.stop()
})

const LIMIT = { name: 'l', requests: 5, window: '1m' }
const policyOf = (name: string, spec: object) => ({
  ...{ apiVersion, kind, metadata: { name } },
  spec: { match: [{ key: 'client' }], limits: [LIMIT], ...spec },
})
const MERGE_PATCH = 'application/merge-patch+json'
const SPEC = { match: [{ key: 'client' }], limits: [LIMIT], domain: 'd' }
const withLimit = (fields: object) => ({ limits: [{ ...LIMIT, ...fields }] })
const withWindow = (window: string) => withLimit({ window })
const windowForm =
  'window must be a whole number and ms, s, m, h or d, such as 30s, from 1ms to 366d'
const nameForm = "name must consist of letters, digits, '.', '_' and '-', and start and end with"
const withSecret = { key: 'api_key', secretRef: { name: 's' } }
const oneOfThree = 'an entry must have at most one of value, secretRef and secretSelector'
const onlyTheLast = 'only the last entry of match may have secretRef or secretSelector'
const entries = (count: number) => Array.from({ length: count }, (_, at) => ({ key: `k${at}` }))

test.each<readonly [object, string]>([
  [{}, 'accepted'],
  [{ mode: 'Audit', onStoreError: 'Deny', domain: 'edge', replaces: ['other'] }, 'accepted'],
  [withLimit({ algorithm: 'TokenBucket', burst: 20 }), 'accepted'],
  [withLimit({ algorithm: 'SlidingWindowLog', requests: 10_000 }), 'accepted'],
  [{ limits: [{ name: 'l', unlimited: true }] }, 'accepted'],
  ...['1ms', '31622400000ms', '1s', '060m', '8784h', '366d'].map(
    (window) => [withWindow(window), 'accepted'] as const,
  ),
  [{ match: [{ key: 'path', value: '/a/*' }] }, 'accepted'],
  [{ match: [...entries(7), withSecret] }, 'accepted'],
  [{ match: [{ key: 'k', secretSelector: { matchLabels: { tier: 'gold' } } }] }, 'accepted'],
  [{ match: [{ ...withSecret, value: 'v' }] }, oneOfThree],
  [{ match: [{ ...withSecret, secretSelector: { matchLabels: { a: 'b' } } }] }, oneOfThree],
  [{ match: [withSecret, { key: 'b' }] }, onlyTheLast],
  [{ match: [withSecret, withSecret] }, onlyTheLast],
  [{ match: [{ key: 'k', secretRef: {} }] }, 'spec.match[0].secretRef.name: Required value'],
  [{ match: [{ key: 'k', secretRef: { name: 'A' } }] }, 'the name of a Secret must consist of'],
  [
    { match: [{ key: 'k', secretSelector: { matchLabels: {} } }] },
    'spec.match[0].secretSelector.matchLabels in body should have at least 1 properties',
  ],
  [
    { match: [{ key: 'k', secretSelector: { matchLabels: { ['n'.repeat(318)]: 'v' } } }] },
    'the name of a label has at most 317 characters',
  ],
  [{ match: undefined }, 'spec.match: Required value'],
  [{ match: [] }, 'spec.match in body should have at least 1 items'],
  [{ match: entries(9) }, 'spec.match: Too many: 9: must have at most 8 items'],
  [{ match: [{ key: 'a*' }] }, "key must not contain '*': only value may contain it"],
  [{ match: [{ key: '' }] }, 'spec.match[0].key in body should be at least 1 chars long'],
  [{ match: [{ key: 'a', value: '' }] }, 'value in body should be at least 1 chars long'],
  [{ match: [{ key: 'k'.repeat(257) }] }, 'spec.match[0].key: Too long: may not be more than 256'],
  [{ limits: [] }, 'spec.limits in body should have at least 1 items'],
  [{ limits: [LIMIT, { ...LIMIT, requests: 9 }] }, 'spec.limits[1]: Duplicate value: {"name":"l"}'],
  [withLimit({ name: 'a b' }), nameForm],
  [withLimit({ name: '-a' }), nameForm],
  [withLimit({ algorithm: 'Guess' }), 'supported values: "TokenBucket", "FixedWindow", "Sliding'],
  [withLimit({ requests: -1 }), 'requests in body should be greater than or equal to 0'],
  [withLimit({ requests: 2 ** 32 }), 'requests in body should be less than or equal to 4294967295'],
  [{ limits: [{ name: 'l' }] }, 'requests and window are required unless unlimited is true'],
  [withLimit({ requests: undefined }), 'requests and window are required unless unlimited is true'],
  [withLimit({ window: undefined }), 'requests and window are required unless unlimited is true'],
  [
    withLimit({ unlimited: true }),
    'a limit with unlimited must not have requests, window or burst',
  ],
  [withLimit({ burst: 9 }), 'burst is only allowed with the algorithm TokenBucket'],
  [
    withLimit({ algorithm: 'SlidingWindowLog', requests: 10_001 }),
    'requests must be at most 10000 with the algorithm SlidingWindowLog',
  ],
  ...['0s', '367d', '8785h', '31622400001ms', '99999999999d', '1.5s', '-1s', '1w', '1sm', 'ms'].map(
    (window) => [withWindow(window), windowForm] as const,
  ),
  [{ mode: 'Off' }, 'spec.mode: Unsupported value: "Off": supported values: "Enforce", "Audit"'],
  [{ onStoreError: 'Guess' }, 'supported values: "Local", "Allow", "Deny"'],
  [{ replaces: ['a', 'a'] }, 'spec.replaces[1]: Duplicate value: "a"'],
  [{ replaces: ['l'] }, 'spec.replaces must name limits of other policies, not a limit of this'],
  [{ limit: LIMIT }, 'unknown field "spec.limit"'],
])('a RateLimitPolicy with %j: %s', async (spec, result) => {
  const query = { dryRun: 'All', fieldValidation: 'Strict' }
  const body = policyOf('p', spec)
  const created = admin.call({ method: 'POST', path: PATH, body, query })
  const acceptance = created.then(
    () => 'accepted',
    (error: unknown) => (error as Error).message,
  )
  expect(await acceptance).toContain(result)
})

/** The policies in docs/policies.md. */
const examples = [...readFileSync('docs/policies.md', 'utf8').matchAll(/```yaml\n(.*?)```/gs)]
  .flatMap(([, yaml = '']) => yaml.split('---\n'))
  .filter((yaml) => yaml.includes(`kind: ${kind}`))

test('the API server accepts the samples', async () => {
  const files = ['code-pool', 'rate-limit-policy'].map((name) => `k8s/samples/${name}.yaml`)
  const args = ['apply', '--dry-run=server', ...files.flatMap((file) => ['-f', file])]
  const results = (await kubectl(...args)).trim().split('\n')
  expect(results).toHaveLength(4)
  for (const result of results) expect(result).toMatch(/ created \(server dry run\)$/)
})

test.each(examples)('the API server and the compiler accept the example %#', async (example) => {
  const body = parse(example) as { metadata: { name: string; namespace: string } }
  const created = await admin.call({
    ...{ method: 'POST', path: PATH.replace('/n/', '/default/') },
    ...{ body: { ...body, metadata: { name: body.metadata.name } }, query: { dryRun: 'All' } },
  })
  const { spec } = created as RateLimitPolicy
  const policy = { ...body.metadata, uid: '', createdMs: 0, generation: 1, spec }
  const grant = { domain: 'edge', namespaces: ['shop'], apiKeys: true }
  const { outcomes } = compile([policy], [grant])
  expect([...outcomes.values()]).toMatchObject([{ accepted: true }])
})

test('the API server sets defaults, and kubectl prints the state by the short name', async () => {
  const body = policyOf('printed', { domain: 'edge' })
  expect(await admin.call({ method: 'POST', path: PATH, body })).toMatchObject({
    spec: { mode: 'Enforce', onStoreError: 'Local', limits: [{ algorithm: 'FixedWindow' }] },
  })
  const conditions = ['Accepted', 'Programmed'].map((type) => ({
    ...{ type, status: type === 'Accepted' ? 'True' : 'False', reason: 'R', message: 'm' },
    lastTransitionTime: '2026-01-01T00:00:00Z',
  }))
  const audit = { wouldDeny: 2 ** 53 - 1, startTime: '2026-01-01T00:00:00Z' }
  const replicas = { active: 1, total: 2 }
  const status = { observedGeneration: 1, conditions, replicas, audit }
  const contentType = MERGE_PATCH
  const path = `${PATH}/printed/status`
  await admin.call({ method: 'PATCH', path, body: { status }, contentType })
  const [head = '', row = ''] = (await kubectl('get', 'rlp')).split('\n')
  expect(head.split(/\s+/)).toEqual([
    'NAME',
    'DOMAIN',
    'MODE',
    'ACCEPTED',
    'PROGRAMMED',
    'ACTIVE',
    'LIMITERS',
    'WOULD-DENY',
    'AGE',
  ])
  expect(row.split(/\s+/).slice(0, -1)).toEqual([
    'printed',
    'edge',
    'Enforce',
    'True',
    'False',
    '1',
    '2',
    '9007199254740991',
  ])
  expect(await kubectl('get', 'curtail')).toContain('ratelimitpolicy.curtail.dev/printed')
})

test('the ClusterRoles allow users to read or change the objects, not their status', async () => {
  const templates = 'charts/curtail-crds/templates'
  await kubectl('apply', '--server-side', '--force-conflicts', '-f', templates)
  const user = server.as('controller')
  const body = policyOf('theirs', {})
  const create = () => user.call({ method: 'POST', path: PATH, body })
  const bind = (role: string) =>
    kubectl('create', 'rolebinding', role, `--clusterrole=${role}`, '--user=controller')
  const read = () => user.call({ method: 'GET', path: PATH })
  await expect(read()).rejects.toThrow('cannot list resource "ratelimitpolicies"')
  await bind('curtail-crds-view')
  await read()
  await expect(create()).rejects.toThrow('cannot create resource "ratelimitpolicies"')
  await bind('curtail-crds-edit')
  const status = { accepted: { generation: 1, spec: SPEC } }
  await user.call({ method: 'POST', path: PATH, body: { ...body, status } })
  const contentType = MERGE_PATCH
  const path = `${PATH}/theirs/status`
  const change = user.call({ method: 'PATCH', path, body: { status }, contentType })
  await expect(change).rejects.toThrow('cannot patch resource "ratelimitpolicies/status"')
  const object = { method: 'PATCH', path: `${PATH}/theirs`, body: { status }, contentType } as const
  expect(await user.call(object)).not.toHaveProperty('status')
})

test.each<readonly [object, string]>([
  [{ generation: 1, spec: SPEC }, 'accepted'],
  [{ generation: 1 }, 'status.accepted.spec: Required value'],
  [{ generation: 1, spec: { ...SPEC, match: entries(9) } }, 'spec.match: Too many: 9'],
  [{ generation: 1, spec: { ...SPEC, ...withWindow('0s') } }, windowForm],
])('status.accepted %j: %s', async (accepted, result) => {
  const metadata = { generateName: 'status-' }
  const created = await admin.call({
    method: 'POST',
    path: PATH,
    body: { ...policyOf('', {}), metadata },
  })
  const path = `${PATH}/${(created as RateLimitPolicy).metadata.name}/status`
  const body = { status: { accepted } }
  const written = admin.call({ method: 'PATCH', path, body, contentType: MERGE_PATCH }).then(
    () => 'accepted',
    (error: unknown) => (error as Error).message,
  )
  expect(await written).toContain(result)
})
