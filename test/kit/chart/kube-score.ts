// Runs kube-score on rendered objects, and lists its advice that does not apply to them, with the
// reasons. Contains no expectation.
import { execFile } from 'node:child_process'
import { KUBERNETES_VERSION } from '../../dependencies/kubernetes-schemas.ts'
import { findKubeScore } from '../../dependencies/kube-score.ts'
import { type KubeObject, refillJobsOf } from './chart-render.ts'

const SCORE_MS_MAX = 20_000
const OUTPUT_BYTES_MAX = 32 * 1024 * 1024
const GRADE_MAX = 10
/** Checks that kube-score does not run by default. */
const MORE_CHECKS = 'container-seccomp-profile,container-ports-check'

/** Advice on the objects whose kind and name match. */
interface ScoreException {
  /** The check of kube-score, and the start of its comment. */
  readonly check: string
  /** Kind and name; by default every object. */
  readonly objects?: RegExp
  readonly reason: string
}

/** The exceptions. Each occurs in a case. */
export const scoreExceptions: readonly ScoreException[] = [
  {
    check: 'container-resources: CPU limit is not set',
    reason: 'A limit throttles a pod although its node has idle CPUs; requests share the CPUs.',
  },
  {
    check: 'container-resources: Memory limit is not set',
    objects: /^Job .*-load-test-/,
    reason: 'k6 needs memory for each waiting user: a limit would end the test of a slow service.',
  },
  {
    check: 'container-ephemeral-storage-request-and-limit: Ephemeral Storage limit is not set',
    reason:
      'Volumes have size limits and root file systems are read-only: only logs grow, and rotate.',
  },
  {
    check: 'container-image-pull-policy: ImagePullPolicy is not set to Always',
    reason: 'The images have fixed tags or digests, and pods start while the registry is down.',
  },
  {
    check: 'deployment-has-host-podantiaffinity: Deployment does not have a host podAntiAffinity',
    reason: 'Topology spread constraints spread the pods over nodes and zones.',
  },
  {
    check: 'statefulset-has-host-podantiaffinity: StatefulSet does not have a host podAntiAffinity',
    reason: 'Topology spread constraints spread the pods over nodes and zones.',
  },
  {
    check: 'container-security-context-user-group-id: The container ',
    objects: /^StatefulSet .*-(cassandra|cache|counters|standalone)$/,
    reason: 'The images of Cassandra and Redis have the user 999; that of standalone has 65532.',
  },
  {
    check: 'statefulset-has-servicename: StatefulSet does not have a valid serviceName',
    objects: /^StatefulSet .*-(cache|counters|standalone)$/,
    reason: 'The only pod is reached by the address of its Service, which outlives the pod.',
  },
  {
    check: 'pod-probes-identical: Container has the same readiness and liveness probe',
    objects: /^StatefulSet .*-(cassandra|standalone)$/,
    reason: 'Only the deadlines differ: liveness restarts a pod that fails for a minute or more.',
  },
  {
    check: 'deployment-replicas: Deployment few replicas',
    objects: /^Deployment .*-edge$/,
    reason: 'In the case with KEDA, a ScaledObject sets the number of pods.',
  },
  {
    check: 'service-type: The service is of type NodePort',
    reason: 'The values of that case select it.',
  },
]

/** A check of one object, as kube-score reports it. */
interface Scored {
  readonly type_meta: { readonly kind: string }
  readonly object_meta: { readonly name: string }
  readonly checks: readonly {
    readonly check: { readonly id: string }
    readonly grade: number
    readonly skipped: boolean
    readonly comments: readonly { readonly path: string; readonly summary: string }[] | null
  }[]
}

/** One piece of advice. */
export interface Advice {
  /** Such as `Deployment shop-curtail-edge`. */
  readonly object: string
  /** The check and its comment. */
  readonly check: string
}

/** The advice on these objects, and on the refill Jobs that the controller creates from them. */
export async function adviceOn(objects: readonly KubeObject[]): Promise<readonly Advice[]> {
  const all = [...objects, ...refillJobsOf(objects)].map((object) => JSON.stringify(object))
  const scores = JSON.parse(await score(all.join('\n---\n'))) as readonly Scored[]
  return scores.flatMap(({ type_meta, object_meta, checks }) =>
    checks
      .filter(({ grade, skipped }) => grade < GRADE_MAX && !skipped)
      .flatMap(({ check, comments }) =>
        (comments ?? [{ summary: 'no comment' }]).map(({ summary }) => ({
          object: `${type_meta.kind} ${object_meta.name}`,
          check: `${check.id}: ${summary}`,
        })),
      ),
  )
}

/** Runs kube-score on manifests; resolves with its report as JSON. */
async function score(manifests: string): Promise<string> {
  const program = await findKubeScore()
  const version = `v${KUBERNETES_VERSION.split('.').slice(0, 2).join('.')}`
  const checks = ['--kubernetes-version', version, '--enable-optional-test', MORE_CHECKS]
  return new Promise((resolve, reject) => {
    const bounds = { timeout: SCORE_MS_MAX, maxBuffer: OUTPUT_BYTES_MAX }
    const args = ['score', ...checks, '--output-format', 'json', '-']
    const child = execFile(program, args, bounds, (error, report, message) => {
      // The exit code is 1 if there is any advice.
      if (error !== null && error.code !== 1) reject(new Error(message, { cause: error }))
      else resolve(report)
    })
    child.stdin?.on('error', () => undefined) // the exit code reports the failure
    child.stdin?.end(manifests)
  })
}

/** The exceptions that apply to `advice`. */
export function exceptionsTo({ object, check }: Advice): readonly ScoreException[] {
  return scoreExceptions.filter(
    (one) => check.startsWith(one.check) && (one.objects?.test(object) ?? true),
  )
}
