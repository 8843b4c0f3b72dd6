// Jobs that the controller's account creates while controller.admissionPolicy is enabled, the
// verdict on each, and a pod that the account patches. Contains no expectation.
import { type HelmShell, NAMESPACE } from './helm-shell.ts'
import { type GivenValues, type KubeObject, refillJobsOf, renderChart } from './chart-render.ts'

interface Variable {
  name: string
  value?: string
  valueFrom?: object
}
interface Container {
  name: string
  image: string
  command: string[]
  env: Variable[]
  volumeMounts: object[]
  [more: string]: unknown
}
interface PodSpec {
  containers: Container[]
  initContainers: Container[]
  volumes: object[]
  [more: string]: unknown
}
interface Job {
  metadata: { name: string; ownerReferences?: object[]; [more: string]: unknown }
  spec: { template: { metadata: Record<string, object>; spec: PodSpec }; [more: string]: unknown }
}

/** Values by which the template has fields that the API server completes or omits. */
export const heldValues: GivenValues = {
  imagePullSecrets: [{ name: 'login' }],
  controller: { admissionPolicy: { enabled: true } },
  pools: {
    pod: {
      ...{ labels: { team: 'links' }, annotations: { note: 'a "quoted" \\ <b>' } },
      ...{ nodeSelector: { disk: 'ssd' }, tolerations: [{ key: 'batch', operator: 'Exists' }] },
      ...{ priorityClassName: 'low', hostAliases: [{ ip: '192.0.2.1', hostnames: ['db'] }] },
      dnsConfig: { options: [{ name: 'ndots', value: '2' }] },
      extraEnv: [
        { name: 'EMPTY', value: '' },
        { name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
        { name: 'CPUS', valueFrom: { resourceFieldRef: { resource: 'limits.cpu' } } },
        { name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'token', key: 'key' } } },
      ],
      extraEnvFrom: [{ configMapRef: { name: 'settings' } }],
      extraVolumes: [
        { name: 'scratch', emptyDir: {} },
        { name: 'files', configMap: { name: 'settings' } },
        {
          name: 'labels',
          downwardAPI: { items: [{ path: 'all', fieldRef: { fieldPath: 'metadata.labels' } }] },
        },
      ],
      extraVolumeMounts: [{ name: 'scratch', mountPath: '/scratch', readOnly: false }],
      extraInitContainers: [
        { name: 'proxy', image: 'proxy', restartPolicy: 'Always', ports: [{ containerPort: 80 }] },
      ],
    },
  },
}

type Change = (pod: PodSpec, job: Job, refill: Container) => void

const setEnv =
  (name: string, fields: Omit<Variable, 'name'>): Change =>
  (_, __, refill) =>
    (refill.env = [...refill.env.filter((one) => one.name !== name), { name, ...fields }])
const setPod =
  (fields: object): Change =>
  (pod) =>
    Object.assign(pod, fields)
const setJob =
  (fields: object): Change =>
  (_, job) =>
    Object.assign(job.spec, fields)
const setRefill =
  (fields: object): Change =>
  (_, __, refill) =>
    Object.assign(refill, fields)
const setMetadata =
  (fields: object): Change =>
  (_, job) =>
    Object.assign(job.spec.template.metadata, fields)
const addVolume =
  (fields: object): Change =>
  (pod) =>
    pod.volumes.push({ name: 'more', ...fields })
const mount = { name: 'code-secret', mountPath: '/etc/curtail/code-secret' }

/** Changes of the chart's Job by words of the message; `created`: the API server accepts it. */
const changesByVerdict: Readonly<Record<string, Readonly<Record<string, Change>>>> = {
  created: {
    unchanged: (pod) => pod,
    resources: setRefill({ resources: { limits: { cpu: 1 } } }),
    deadline: setJob({ activeDeadlineSeconds: 60 }),
  },
  ServiceAccount: {
    account: setPod({ serviceAccountName: 'default' }),
    token: setPod({ automountServiceAccountToken: true }),
  },
  'start one pod at a time': {
    parallelism: setJob({ parallelism: 2 }),
    completions: setJob({ completions: 2 }),
    retries: setJob({ backoffLimit: 7 }),
    'no-deadline': (_, job) => delete job.spec['activeDeadlineSeconds'],
    ttl: setJob({ ttlSecondsAfterFinished: 1 }),
  },
  'labels and annotations of the chart': {
    label: (_, { spec }) => {
      spec.template.metadata['labels'] = { ...spec.template.metadata['labels'], team: 'other' }
    },
    'no-label': setMetadata({ labels: {} }),
    annotation: setMetadata({ annotations: { 'k8s.example/inject': 'x' } }),
  },
  'fields of the chart': {
    'host-network': setPod({ hostNetwork: true }),
    node: setPod({ nodeName: 'control-plane' }),
    selector: setPod({ nodeSelector: { disk: 'hdd' } }),
    toleration: setPod({ tolerations: [{ operator: 'Exists' }] }),
    affinity: setPod({ affinity: { podAntiAffinity: {} } }),
    priority: setPod({ priorityClassName: 'system-node-critical' }),
    runtime: setPod({ runtimeClassName: 'other' }),
    hosts: setPod({ hostAliases: [{ ip: '192.0.2.2', hostnames: ['cassandra'] }] }),
    dns: setPod({ dnsConfig: { nameservers: ['192.0.2.2'] } }),
    user: setPod({ securityContext: { runAsUser: 1 } }),
    'no-security': (pod) => delete pod['securityContext'],
    'pull-secret': setPod({ imagePullSecrets: [{ name: 'other' }] }),
    'share-process': setPod({ shareProcessNamespace: true }),
  },
  'containers of the chart': {
    image: setRefill({ image: 'evil' }),
    'init-image': (pod) => Object.assign(pod.initContainers[0] ?? {}, { image: 'evil' }),
    command: (_, __, refill) => refill.command.push('--eval'),
    args: setRefill({ args: ['--eval'] }),
    container: (pod, _, refill) => pod.containers.push({ ...refill, name: 'more' }),
    'no-init': (pod) => (pod.initContainers = []),
    'env-from': setRefill({ envFrom: [{ secretRef: { name: 'other' } }] }),
    prefix: setRefill({ envFrom: [{ prefix: 'NODE_', configMapRef: { name: 'settings' } }] }),
    // The tests' API server itself rejects `privileged`.
    capability: setRefill({ securityContext: { capabilities: { add: ['SYS_ADMIN'] } } }),
    'no-container-security': (_, __, refill) => delete refill['securityContext'],
    hook: setRefill({ lifecycle: { preStop: { exec: { command: ['sh'] } } } }),
    'working-folder': setRefill({ workingDir: '/tmp' }),
  },
  'variables of the chart': {
    env: setEnv('NODE_OPTIONS', { value: '-r x' }),
    value: setEnv('CASSANDRA_CONTACT_POINTS', { value: 'evil' }),
    'secret-variable': setEnv('LOG_LEVEL', {
      valueFrom: { secretKeyRef: { name: 'token', key: 'other' } },
    }),
    'secret-file': setEnv('CODE_SECRET_FILE', { value: '/etc/passwd' }),
    'pool-of-secret': setEnv('CODE_POOL', {
      valueFrom: { secretKeyRef: { name: 'token', key: 'key' } },
    }),
    'pool-of-variable': setEnv('CODE_POOL', { value: '$(TOKEN)' }),
  },
  'mounts of the chart': {
    mount: setRefill({ volumeMounts: [{ ...mount, mountPath: '/app' }] }),
    'scratch-mount': (_, __, refill) => (refill.volumeMounts = refill.volumeMounts.slice(1)),
    'sub-path': (_, __, refill) =>
      refill.volumeMounts.splice(-1, 1, { ...mount, readOnly: true, subPath: 'a' }),
  },
  'volumes of the chart': {
    secret: (pod) =>
      pod.volumes.splice(-1, 1, { name: 'code-secret', secret: { secretName: 'other' } }),
    'more-secrets': addVolume({ secret: { secretName: 'other' } }),
    map: (pod) => Object.assign(pod.volumes[1] ?? {}, { configMap: { name: 'other' } }),
    'host-path': addVolume({ hostPath: { path: '/' } }),
    claim: addVolume({ persistentVolumeClaim: { claimName: 'data' } }),
  },
  'controlled by a CodePool': {
    'no-owner': (_, job) => delete job.metadata.ownerReferences,
  },
}

/** A Job, its name, and words of the message of its rejection; or `created`. */
export interface HeldJob {
  readonly name: string
  readonly object: object
  readonly verdict: string
}

/** The Job that the controller creates for a release with `heldValues`, and changes of it. */
export async function heldJobs(release: string): Promise<readonly HeldJob[]> {
  const objects = await renderChart({ major: 4, release, values: heldValues })
  const [job] = refillJobsOf(withUids(objects))
  return Object.entries(changesByVerdict).flatMap(([verdict, changes]) =>
    Object.entries(changes).map(([name, change]) => {
      const changed = structuredClone(job) as unknown as Job
      changed.metadata.name = name
      const pod = changed.spec.template.spec
      const [refill] = pod.containers
      if (refill === undefined) throw new Error('the Job has no container')
      change(pod, changed, refill)
      return { name, object: changed, verdict }
    }),
  )
}

/** An owner reference needs the uid that the API server gives an object. */
function withUids(objects: readonly KubeObject[]): readonly KubeObject[] {
  const uid = '11111111-1111-4111-8111-111111111111'
  return objects.map((object) => ({ ...object, metadata: { ...object.metadata, uid } }))
}

/** The verdict on a Job in the output of kubectl. */
export function verdictOf({ name, verdict }: HeldJob, output: string): string {
  if (output.includes(`job.batch/${name} created`)) return 'created'
  const message = output.split('\n').find((line) => line.includes(`jobs.batch "${name}" is`)) ?? ''
  return message.includes(verdict) ? verdict : message
}

/** Creates a pod; returns a function by which the account could patch it: the error, or ''. */
export async function startHeldPod(
  { sh, shOrThrow }: Pick<HelmShell, 'sh' | 'shOrThrow'>,
  account: string,
): Promise<(body: string) => Promise<string>> {
  const kubectl = `kubectl -n ${NAMESPACE}`
  await shOrThrow(`${kubectl} run held --image=one --labels=a=b`)
  // Unlike the controller, `kubectl patch` reads the object first.
  await shOrThrow(`${kubectl} create role reader --verb=get --resource=pods`)
  await shOrThrow(`${kubectl} create rolebinding reader --role=reader --user=${account}`)
  return async (body) => {
    const patch = `${kubectl} patch pod held --dry-run=server`
    const { code, output } = await sh(`${patch} --as=${account} -p '${body}'`)
    return code === 0 ? '' : output
  }
}
