// A real API server with RateLimitPolicies, and the role `controller` with only its permissions.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { APPLY, type KubeApi } from '../../../src/kube/api.ts'
import { pathOf } from '../../../src/kube/objects.ts'
import {
  RATE_LIMIT_POLICIES,
  type RateLimitPolicy,
} from '../../../src/kube/rate-limit-policy/rate-limit-policy.ts'
import { freePort } from '../../dependencies/free-ports.ts'
import { type KubeApiserver, startKubeApiserver } from '../../dependencies/kube-apiserver.ts'
import { type RoleOptions, type RoleProcess, startRole } from '../processes/role-process.ts'
import { applyCrd, CODE_POOLS_CRD } from './apply-crd.ts'
import { TEMPLATE } from './pool-keeper.ts'

const CONTROLLER_NAMESPACE = 'curtail'

/** The Secret in which a controller with this setting stores the rules. */
export const VERSION_SECRET = {
  env: { ADS_VERSION_SECRET: 'rules' },
  path: `/api/v1/namespaces/${CONTROLLER_NAMESPACE}/secrets/rules`,
} as const

/** The controller's permissions in its own namespace: for CodePools, its Lease and the rules. */
const OWN_RULES = [
  { apiGroups: [''], resources: ['secrets'], resourceNames: ['rules'], verbs: ['get', 'patch'] },
  { apiGroups: ['curtail.dev'], resources: ['codepools'], verbs: ['list', 'watch'] },
  { apiGroups: ['batch'], resources: ['jobs'], verbs: ['list', 'watch'] },
  {
    apiGroups: ['coordination.k8s.io'],
    resources: ['leases'],
    verbs: ['create', 'get', 'update'],
  },
]

/** Its permissions in each namespace with RateLimitPolicies, which docs/policies.md lists. */
const POLICY_RULES = [
  { apiGroups: ['curtail.dev'], resources: ['ratelimitpolicies'], verbs: ['list', 'watch'] },
  { apiGroups: ['curtail.dev'], resources: ['ratelimitpolicies/status'], verbs: ['patch'] },
  { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
]

/** Its permissions in namespaces whose policies may reference Secrets. */
const API_KEY_RULES = [{ apiGroups: [''], resources: ['secrets'], verbs: ['list', 'watch'] }]

const RBAC = 'rbac.authorization.k8s.io'

/** An API server and its controllers. */
export interface PolicyCluster {
  readonly admin: KubeApi
  /** Kills the API server, and restarts it with the same objects. */
  readonly apiserver: Pick<KubeApiserver, 'kill' | 'restart'>
  /** The port on which the leader serves limiters. */
  readonly adsPort: number
  /** Creates a namespace in which the controller has no permissions. */
  createNamespace(name: string): Promise<void>
  /** Grants the controller its permissions in a namespace, or revokes them. */
  grant(namespace: string): Promise<void>
  revoke(namespace: string): Promise<void>
  /** Grants the controller the Secrets of a namespace. */
  grantApiKeys(namespace: string): Promise<void>
  /** Starts a controller; `domains` is RATELIMIT_DOMAINS. */
  startController(
    domains: readonly object[],
    env?: Readonly<Record<string, string>>,
    program?: Pick<RoleOptions, 'entryFile' | 'nodeOptions'>,
  ): Promise<RoleProcess>
  /** Kills a controller, and deletes its Lease, so that the next one leads without a wait. */
  kill(controller: RoleProcess): Promise<void>
  apply(namespace: string, name: string, spec: object): Promise<void>
  remove(namespace: string, name: string): Promise<void>
  /** The reasons of Accepted and Programmed, and `active/total`; or `outdated`. */
  shown(namespace: string, name: string): Promise<string>
  read(namespace: string, name: string): Promise<RateLimitPolicy>
  /** The policy, type and reason of each event, sorted. */
  events(namespace: string): Promise<string[]>
  stop(): Promise<void>
}

/** Starts the API server, without the CRD of RateLimitPolicies. */
export async function startPolicyCluster(): Promise<PolicyCluster> {
  const server = await startKubeApiserver((line) => process.stdout.write(`${line}\n`))
  const folder = await mkdtemp(join(tmpdir(), 'curtail-policies-'))
  const admin = server.as('admin')
  const adsPort = await freePort()
  const controllers: RoleProcess[] = []
  const objects = operate(admin)
  await applyCrd(admin, CODE_POOLS_CRD)
  await objects.createNamespace(CONTROLLER_NAMESPACE)
  await objects.bind(CONTROLLER_NAMESPACE, OWN_RULES)
  await admin.call({
    method: 'POST',
    path: `/api/v1/namespaces/${CONTROLLER_NAMESPACE}/secrets`,
    body: { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'rules' } },
  })
  const environment = await writeFiles(server, folder)
  const kill = async (controller: RoleProcess) => {
    controller.child.kill('SIGKILL')
    await controller.exited
  }
  return {
    ...objects,
    admin,
    apiserver: server,
    adsPort,
    grant: (namespace) => objects.bind(namespace, POLICY_RULES),
    grantApiKeys: (namespace) => objects.bind(namespace, API_KEY_RULES, 'api-keys'),
    async startController(domains, env, program) {
      const controller = await startRole({
        ...program,
        role: 'controller',
        wrapper: ['setpriv', '--pdeathsig', 'KILL'],
        env: {
          ...environment,
          ADS_PORT: String(adsPort),
          RATELIMIT_DOMAINS: JSON.stringify(domains),
          ...env,
        },
      })
      controllers.push(controller)
      return controller
    },
    async kill(controller) {
      await kill(controller)
      const leases = `/apis/coordination.k8s.io/v1/namespaces/${CONTROLLER_NAMESPACE}/leases`
      await admin.call({ method: 'DELETE', path: `${leases}/curtail-controller` })
    },
    async stop() {
      await Promise.all(controllers.map(kill))
      await server.stop()
      await rm(folder, { recursive: true })
    },
  }
}

/** The environment of the controller, whose store is unavailable. */
async function writeFiles(server: KubeApiserver, folder: string): Promise<Record<string, string>> {
  const [kubeconfig, template] = [join(folder, 'kubeconfig'), join(folder, 'template.yaml')]
  await server.writeKubeconfig(kubeconfig, 'controller', CONTROLLER_NAMESPACE)
  await writeFile(template, TEMPLATE)
  return {
    KUBECONFIG: kubeconfig,
    REFILL_POD_TEMPLATE: template,
    ADMIN_PORT: '0',
    CASSANDRA_CONTACT_POINTS: '127.0.0.1',
    CASSANDRA_PORT: '1', // no Cassandra listens there
    CASSANDRA_LOCAL_DC: 'dc1',
  }
}

/** The calls of the administrator. */
function operate(admin: KubeApi) {
  const post = (path: string, body: object) => admin.call({ method: 'POST', path, body })
  const at = (namespace: string, name: string) => pathOf(RATE_LIMIT_POLICIES, { namespace, name })
  const { apiVersion, kind } = RATE_LIMIT_POLICIES
  const read = async (namespace: string, name: string) =>
    (await admin.call({ method: 'GET', path: at(namespace, name) })) as RateLimitPolicy
  return {
    async createNamespace(name: string) {
      const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }
      await post('/api/v1/namespaces', body)
    },
    async bind(namespace: string, rules: readonly object[], name = 'controller') {
      const root = `/apis/${RBAC}/v1/namespaces/${namespace}`
      const object = { apiVersion: `${RBAC}/v1`, metadata: { name } }
      await post(`${root}/roles`, { ...object, kind: 'Role', rules })
      await post(`${root}/rolebindings`, {
        ...object,
        kind: 'RoleBinding',
        roleRef: { apiGroup: RBAC, kind: 'Role', name },
        subjects: [{ kind: 'User', name: 'controller', apiGroup: RBAC }],
      })
    },
    async revoke(namespace: string) {
      const root = `/apis/${RBAC}/v1/namespaces/${namespace}`
      await admin.call({ method: 'DELETE', path: `${root}/rolebindings/controller` })
      await admin.call({ method: 'DELETE', path: `${root}/roles/controller` })
    },
    async apply(namespace: string, name: string, spec: object) {
      const body = { apiVersion, kind, metadata: { name, namespace }, spec }
      const query = { ...APPLY.query, fieldManager: 'kubectl' }
      const { contentType } = APPLY
      await admin.call({ method: 'PATCH', path: at(namespace, name), body, contentType, query })
    },
    async remove(namespace: string, name: string) {
      await admin.call({ method: 'DELETE', path: at(namespace, name) })
    },
    read,
    async events(namespace: string) {
      const path = `/apis/events.k8s.io/v1/namespaces/${namespace}/events`
      const { items } = (await admin.call({ method: 'GET', path })) as {
        items: { regarding: { name: string }; type: string; reason: string }[]
      }
      return items
        .map(({ regarding, type, reason }) => `${regarding.name} ${type} ${reason}`)
        .sort()
    },
    async shown(namespace: string, name: string) {
      const { metadata, status } = await read(namespace, name)
      if (status?.observedGeneration !== metadata.generation) return 'outdated'
      const reasonOf = (type: string) =>
        status?.conditions?.find((condition) => condition.type === type)?.reason ?? ''
      const { active = 0, total = 0 } = status?.replicas ?? {}
      return `${reasonOf('Accepted')}, ${reasonOf('Programmed')}, ${active}/${total}`
    },
  }
}
