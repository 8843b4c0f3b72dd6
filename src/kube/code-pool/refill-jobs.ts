// Refill Jobs as Kubernetes objects: renders a Job from the chart's pod template and a CodePool,
// and parses existing Jobs. Sends no requests.
import { createHash } from 'node:crypto'
import { parse } from 'yaml'
import type { ObservedJob, Problem } from '../../codes/observed-state.ts'
import { controllerOf, type KubeObject } from '../objects.ts'
import { CODE_POOLS, type CodePool } from './code-pool.ts'

/** The resource of Jobs. */
export const JOBS = { group: 'batch', version: 'v1', plural: 'jobs' } as const

/** Only Jobs with this label are watched. */
export const JOB_SELECTOR = 'app.kubernetes.io/managed-by=curtail-controller'
/** Annotations: the number of the refill, and the hash of its inputs. */
const REFILL_ANNOTATION = 'curtail.dev/refill'
const INPUTS_ANNOTATION = 'curtail.dev/inputs'
/** The name of the container that the template must have. */
export const REFILL_CONTAINER = 'refill'
/** The volume of the code secret; it extends a volume of this name in the template. */
const VOLUME = 'code-secret'
const SECRET_FOLDER = '/etc/curtail/code-secret'
const DEADLINE_SECONDS = 3600
/** A Job fails after this many failed pods; disrupted ones do not count. A new Job retries. */
const FAILED_PODS_MAX = 2
/** Exit code of `refill` for an invalid setting, which a retry does not fix. */
const EXIT_BAD_SETTING = 2
/** Exit code of `refill` if the pool was created with a different code secret. */
export const EXIT_OTHER_SECRET = 3

/** The cached fields of a Job. */
export interface RefillJob extends KubeObject {
  /** The number of the refill, from 1; 0 if the annotation is missing. */
  readonly refill: number
  /** The hash of the inputs that the Job was rendered from. */
  readonly inputs: string
  readonly state: ObservedJob['state']
  readonly startedMs: number
  readonly finishedMs: number | null
  /** Whether its pod is ready. */
  readonly isReady: boolean
  /** Reason and message of a failed Job. */
  readonly failure: string | null
}

interface ApiJob extends KubeObject {
  readonly status?: {
    readonly ready?: number
    readonly conditions?: readonly {
      readonly type: string
      readonly status: string
      readonly reason?: string
      readonly message?: string
      readonly lastTransitionTime?: string
    }[]
  }
}

/** Selects and parses the cached fields of a Job. */
export function trimJob(object: KubeObject): RefillJob {
  const { metadata, status = {} } = object as ApiJob
  const { name, namespace, uid, resourceVersion, deletionTimestamp, ownerReferences } = metadata
  return {
    metadata: {
      name,
      namespace,
      uid,
      resourceVersion,
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
      ...(ownerReferences !== undefined && { ownerReferences }),
    },
    refill: Number(metadata.annotations?.[REFILL_ANNOTATION] ?? 0),
    inputs: metadata.annotations?.[INPUTS_ANNOTATION] ?? '',
    startedMs: timeOf(metadata.creationTimestamp) ?? 0,
    isReady: (status.ready ?? 0) > 0,
    ...completionOf(status),
  }
}

/** The state and completion of a Job. */
function completionOf({ conditions = [] }: NonNullable<ApiJob['status']>) {
  const completion = conditions.find(
    ({ type, status }) => (type === 'Complete' || type === 'Failed') && status === 'True',
  )
  if (completion === undefined)
    return { state: 'running', finishedMs: null, failure: null } as const
  const finishedMs = timeOf(completion.lastTransitionTime)
  if (completion.type === 'Complete')
    return { state: 'succeeded', finishedMs, failure: null } as const
  const failure = `${completion.reason ?? ''}: ${completion.message ?? ''}`
  return { state: 'failed', finishedMs, failure } as const
}

function timeOf(timestamp: string | undefined): number | null {
  const ms = Date.parse(timestamp ?? '')
  return Number.isNaN(ms) ? null : ms
}

/** The uid of the CodePool that a Job belongs to. */
export function poolUidOf(job: KubeObject): string | undefined {
  return controllerOf(job)?.uid
}

/** The name of a refill's Job, deterministic so that the Job cannot be created twice. */
export function jobNameOf({ metadata }: CodePool, refill: number): string {
  const hash = createHash('sha256').update(`${metadata.uid} ${refill}`).digest('hex').slice(0, 10)
  return `${metadata.name.slice(0, 40).replace(/[.-]+$/, '')}-refill-${hash}`
}

/** A pod template as the chart renders it. */
export interface PodTemplate {
  readonly metadata?: { readonly labels?: Readonly<Record<string, string>> }
  readonly spec: {
    readonly containers: readonly Container[]
    readonly volumes?: readonly Named[]
    readonly [more: string]: unknown
  }
}

interface Named {
  readonly name: string
  readonly [more: string]: unknown
}

interface Container extends Named {
  readonly env?: readonly Named[]
  readonly volumeMounts?: readonly Named[]
}

/** Parses a template; returns the problem if it is invalid. */
export function parseTemplate(source: string): PodTemplate | Problem {
  const invalid = (what: string) => ({
    reason: 'TemplateInvalid',
    message: `the pod template of refill Jobs ${what}`,
  })
  let template: Partial<PodTemplate> | null
  try {
    template = parse(source) as Partial<PodTemplate> | null
  } catch {
    return invalid('is not YAML')
  }
  const containers = template?.spec?.containers
  if (template?.spec === undefined || !Array.isArray(containers))
    return invalid('must have spec.containers')
  if (!containers.some((container: Partial<Named> | null) => container?.name === REFILL_CONTAINER))
    return invalid(`must have a container named ${REFILL_CONTAINER}`)
  return { ...template, spec: template.spec }
}

/** Whether `value` is a problem instead of a template. */
export function isProblem(value: PodTemplate | Problem): value is Problem {
  return 'reason' in value
}

/** The hash of all inputs of a Job except the level to fill to, which depends on the claim rate. */
export function inputsHashOf({ spec }: CodePool, { storeName, template }: JobInputs): string {
  const { target, codeSecret, job } = spec
  const all = JSON.stringify([storeName, target, codeSecret, job, template])
  return createHash('sha256').update(all).digest('hex').slice(0, 16)
}

/** The inputs of a Job besides the CodePool. */
export interface JobInputs {
  readonly storeName: string
  readonly template: PodTemplate
}

/** Renders a refill Job. */
export function renderJob(
  pool: CodePool,
  inputs: JobInputs & { readonly refill: number; readonly fillTo: number },
) {
  const { metadata, spec } = pool
  const { template, refill } = inputs
  const labels = {
    'app.kubernetes.io/managed-by': 'curtail-controller',
    'app.kubernetes.io/part-of': 'curtail',
    'curtail.dev/codepool': metadata.name,
  }
  const owner = {
    apiVersion: CODE_POOLS.apiVersion,
    kind: CODE_POOLS.kind,
    name: metadata.name,
    uid: metadata.uid,
    controller: true,
  }
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: jobNameOf(pool, refill),
      namespace: metadata.namespace,
      labels,
      annotations: {
        [REFILL_ANNOTATION]: String(refill),
        [INPUTS_ANNOTATION]: inputsHashOf(pool, inputs),
      },
      ownerReferences: [owner],
    },
    spec: {
      parallelism: 1,
      completions: 1,
      backoffLimit: FAILED_PODS_MAX - 1,
      activeDeadlineSeconds: spec.job?.activeDeadlineSeconds ?? DEADLINE_SECONDS,
      podFailurePolicy: {
        rules: [
          {
            action: 'FailJob',
            onExitCodes: {
              containerName: REFILL_CONTAINER,
              operator: 'In',
              values: [EXIT_BAD_SETTING, EXIT_OTHER_SECRET],
            },
          },
          { action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] },
        ],
      },
      template: {
        metadata: {
          ...template.metadata,
          labels: { ...template.metadata?.labels, 'curtail.dev/codepool': metadata.name },
        },
        spec: renderPodSpec(pool, inputs),
      },
    },
  }
}

function renderPodSpec(pool: CodePool, inputs: JobInputs & { readonly fillTo: number }) {
  const { codeSecret, job } = pool.spec
  const { spec } = inputs.template
  const env = [
    { name: 'CODE_POOL', value: inputs.storeName },
    { name: 'POOL_TARGET', value: String(inputs.fillTo) },
    { name: 'CODE_SECRET_FILE', value: `${SECRET_FOLDER}/secret` },
  ]
  const items = [{ key: codeSecret.key, path: 'secret' }]
  const templateSecret = spec.volumes?.find(({ name }) => name === VOLUME)?.['secret']
  const volume = {
    name: VOLUME,
    secret: { ...(templateSecret as object | undefined), secretName: codeSecret.name, items },
  }
  const mount = { name: VOLUME, mountPath: SECRET_FOLDER, readOnly: true }
  const renderContainer = (container: Container) => ({
    ...container,
    env: overlay(container.env, env),
    volumeMounts: overlay(container.volumeMounts, [mount]),
    terminationMessagePolicy: 'FallbackToLogsOnError',
    ...(job?.resources !== undefined && { resources: job.resources }),
  })
  return {
    ...spec,
    restartPolicy: 'Never',
    containers: spec.containers.map((container) =>
      container.name === REFILL_CONTAINER ? renderContainer(container) : container,
    ),
    volumes: overlay(spec.volumes, [volume]),
  }
}

/** The entries of `base` that no override replaces, then `overrides`. */
function overlay(base: readonly Named[] | undefined, overrides: readonly Named[]) {
  const names = new Set(overrides.map(({ name }) => name))
  return [...(base ?? []).filter(({ name }) => !names.has(name)), ...overrides]
}
