// A project on OpenShift: the API of the SecurityContextConstraints, which the charts detect, and
// pods with the ids that restricted-v2 assigns. Admission policies replace OpenShift's admission:
// one sets the ids of the project in a pod, the other rejects all other ids.
import { waitFor } from '../kit/wait-for.ts'
import { applyObjects, createNamespace, kubectl, tryRun } from './cluster.ts'
import { restrictedPod } from './pods.ts'

const POLICIES_API = 'admissionregistration.k8s.io'
/** The API group of the definition, and the plural of its kind. */
const GROUP = 'security.openshift.io'
const PLURAL = 'securitycontextconstraints'
const POLICY = 'scc-restricted-v2'
/** Of the namespaces to which the policies apply. */
const LABEL = 'curtail.test/openshift-project'
/** Annotations of every project: the range of its ids, and its SELinux level. */
const UID_RANGE = 'openshift.io/sa.scc.uid-range'
const SELINUX_LEVEL = 'openshift.io/sa.scc.mcs'
const RANGE_SIZE = 10_000
/** The API server applies new policies some time after their creation. */
const READY_MS_MAX = 120_000

const matchConstraints = {
  namespaceSelector: { matchExpressions: [{ key: LABEL, operator: 'Exists' }] },
  resourceRules: [
    { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] },
  ],
}
const bounds = `namespaceObject.metadata.annotations['${UID_RANGE}'].split('/')`
const initContainers = 'object.spec.?initContainers.orValue([])'
const variables = [
  { name: 'firstId', expression: `int(${bounds}[0])` },
  { name: 'endId', expression: `variables.firstId + int(${bounds}[1])` },
  { name: 'containers', expression: `object.spec.containers + ${initContainers}` },
]

/** The expression of a list of containers, each with its own user, the pod's, or the project's. */
function withUser(field: string, list: string): string {
  const ofPod = 'object.spec.?securityContext.?runAsUser.orValue(variables.firstId)'
  return `${field}: ${list}.map(one, Object.spec.${field}{
      name: one.name,
      securityContext: Object.spec.${field}.securityContext{
        runAsUser: one.?securityContext.?runAsUser.orValue(${ofPod})
      }
    })`
}

const mutation = `Object{
  spec: Object.spec{
    securityContext: Object.spec.securityContext{
      fsGroup: object.spec.?securityContext.?fsGroup.orValue(variables.firstId),
      seLinuxOptions: Object.spec.securityContext.seLinuxOptions{
        level: namespaceObject.metadata.annotations['${SELINUX_LEVEL}']
      }
    },
    ${withUser('containers', 'object.spec.containers')},
    ${withUser('initContainers', initContainers)}
  }
}`

const isInRange = (id: string) => `variables.firstId <= ${id} && ${id} < variables.endId`
const isDefault = (owner: string, unset: string) =>
  `${owner}.securityContext.?seccompProfile.?type.orValue('${unset}') == 'RuntimeDefault'`

/** What restricted-v2 forbids beyond the restricted Pod Security Standard of the namespace. */
const validations: Readonly<Record<string, string>> = {
  'a user is not in the range of the project':
    'variables.containers.all(one, ' + `${isInRange('one.securityContext.runAsUser')})`,
  'fsGroup is not in the range of the project': isInRange('object.spec.securityContext.fsGroup'),
  'a seccomp profile is not RuntimeDefault':
    `${isDefault('object.spec', '')} && ` +
    `variables.containers.all(one, ${isDefault('one', 'RuntimeDefault')})`,
}

function renderPolicies(): readonly object[] {
  const metadata = { name: POLICY }
  const policyName = POLICY
  const mutating = `${POLICIES_API}/v1beta1`
  const validating = `${POLICIES_API}/v1`
  const spec = { failurePolicy: 'Fail', matchConstraints, variables }
  const changes = { patchType: 'ApplyConfiguration', applyConfiguration: { expression: mutation } }
  return [
    {
      ...{ apiVersion: mutating, kind: 'MutatingAdmissionPolicy', metadata },
      spec: { ...spec, reinvocationPolicy: 'Never', mutations: [changes] },
    },
    {
      ...{ apiVersion: mutating, kind: 'MutatingAdmissionPolicyBinding', metadata },
      spec: { policyName },
    },
    {
      ...{ apiVersion: validating, kind: 'ValidatingAdmissionPolicy', metadata },
      spec: {
        ...spec,
        validations: Object.entries(validations).map(([fault, expression]) => ({
          expression,
          message: `restricted-v2: ${fault}`,
        })),
      },
    },
    {
      ...{ apiVersion: validating, kind: 'ValidatingAdmissionPolicyBinding', metadata },
      spec: { policyName, validationActions: ['Deny'] },
    },
  ]
}

const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${PLURAL}.${GROUP}` },
  spec: {
    group: GROUP,
    scope: 'Cluster',
    names: { plural: PLURAL, singular: PLURAL, kind: 'SecurityContextConstraints' },
    versions: [
      {
        ...{ name: 'v1', served: true, storage: true },
        schema: {
          openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        },
      },
    ],
  },
}

/** Adds the API of the SecurityContextConstraints and the policies to the cluster. */
export async function installOpenShift(): Promise<void> {
  // One list: kubectl fails to split so long a stream of JSON objects.
  await applyObjects({ apiVersion: 'v1', kind: 'List', items: [...renderPolicies(), definition] })
  const named = `crd/${definition.metadata.name}`
  await kubectl('wait', '--for=condition=Established', named, '--timeout=60s')
}

/** Removes the API and the policies; the next installation of a chart has fixed ids. */
export async function uninstallOpenShift(): Promise<void> {
  for (const kind of ['mutatingadmissionpolicy', 'validatingadmissionpolicy']) {
    await kubectl('delete', `${kind}binding`, POLICY, '--ignore-not-found')
    await kubectl('delete', kind, POLICY, '--ignore-not-found')
  }
  const named = `crd/${definition.metadata.name}`
  await kubectl('delete', named, '--ignore-not-found', '--timeout=60s')
}

/** Creates a namespace whose range of ids starts with `uid`; resolves once the policies apply. */
export async function createProject(name: string, uid: number): Promise<void> {
  await createNamespace(name)
  await kubectl('label', 'namespace', name, `${LABEL}=`)
  const annotations = [`${UID_RANGE}=${uid}/${RANGE_SIZE}`, `${SELINUX_LEVEL}=s0:c26,c5`]
  await kubectl('annotate', 'namespace', name, ...annotations)
  const hasIds = async () => (await tryPod(name, {})).stdout === `${uid} ${uid}`
  await waitFor(`the ids of the project ${name}`, hasIds, READY_MS_MAX)
  for (const wrong of [{ runAsUser: uid - 1 }, { fsGroup: uid + RANGE_SIZE }]) {
    const rejects = async () => (await tryPod(name, wrong)).stderr.includes('restricted-v2: ')
    const what = `the rejection of ${JSON.stringify(wrong)} in ${name}`
    await waitFor(what, rejects, READY_MS_MAX)
  }
}

/** Validates a pod with these ids without creating it; outputs the ids that it would have. */
function tryPod(namespace: string, ids: { runAsUser?: number; fsGroup?: number }) {
  const pod = restrictedPod('some', { command: ['/some'] })
  const securityContext = { ...pod.spec.securityContext, ...ids }
  const given = JSON.stringify({ ...pod, spec: { ...pod.spec, securityContext } })
  const output = '{.spec.containers[0].securityContext.runAsUser} {.spec.securityContext.fsGroup}'
  const args = ['create', '--dry-run=server', '-f', '-', '-o', `jsonpath=${output}`]
  return tryRun('kubectl', [...args, '--namespace', namespace], given)
}
