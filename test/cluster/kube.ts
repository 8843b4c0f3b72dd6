// The API server of the test cluster without kubectl, for what is asked thousands of times; and
// what it has written down of the calls of the controller.
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { openAccess } from '../../src/kube/access.ts'
import { createKubeApi, type KubeApi } from '../../src/kube/api.ts'
import { systemScheduler } from '../../src/kube/scheduler.ts'
import { createTransport } from '../../src/kube/transport.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { FULL_NAME, RELEASE } from './release.ts'

/** Calls as the cluster's administrator; `close` must be called. */
export async function openKubeApi(): Promise<{ api: KubeApi; close: () => void }> {
  const transport = createTransport(await openAccess({ KUBECONFIG: environment('KUBECONFIG') }))
  const api = createKubeApi({ transport, scheduler: systemScheduler, metrics: createMetrics() })
  return { api, close: transport.close }
}

/** A variable that run.ts sets. Throws where it is not there. */
export function environment(name: string): string {
  const value = process.env[name]
  if (value === undefined) throw new Error('the tests of the cluster run by npm run test:cluster')
  return value
}

/** One call as the API server wrote it down. */
export interface Audited {
  readonly verb: string
  /** With its group, such as `batch/jobs` or `curtail.dev/codepools/status`. */
  readonly resource: string
  readonly name: string
  readonly code: number
  readonly isForbidden: boolean
  readonly pod: string
  readonly atMs: number
}

interface AuditEvent {
  readonly verb: string
  readonly user: {
    readonly username: string
    readonly extra?: Readonly<Record<string, readonly string[]>>
  }
  readonly objectRef?: {
    readonly apiGroup?: string
    readonly resource?: string
    readonly subresource?: string
    readonly name?: string
  }
  readonly responseStatus?: { readonly code?: number }
  readonly annotations?: Readonly<Record<string, string>>
  readonly requestReceivedTimestamp: string
}

const CONTROLLER = `system:serviceaccount:${RELEASE}:${FULL_NAME}-controller`

/** What has been read of the log so far. */
const read: { bytes: number; readonly calls: Audited[] } = { bytes: 0, calls: [] }

/** Every call of the controller since `sinceMs`; those under way are told when they have ended. */
export async function auditedCalls(sinceMs = 0): Promise<readonly Audited[]> {
  const path = join(environment('CLUSTER_LOGS'), 'components', 'audit.log')
  const file = await open(path)
  try {
    const { size } = await file.stat()
    const { buffer } = await file.read({
      buffer: Buffer.alloc(size - read.bytes),
      position: read.bytes,
    })
    const end = buffer.lastIndexOf(10) + 1
    read.bytes += end
    for (const line of buffer.toString('utf8', 0, end).split('\n')) {
      const event = line === '' ? undefined : (JSON.parse(line) as AuditEvent)
      if (event?.user.username === CONTROLLER) read.calls.push(auditedOf(event))
    }
  } finally {
    await file.close()
  }
  return read.calls.filter(({ atMs }) => atMs >= sinceMs)
}

function auditedOf({ verb, user, objectRef = {}, ...event }: AuditEvent): Audited {
  const { apiGroup = '', resource = '', subresource, name = '' } = objectRef
  const code = event.responseStatus?.code ?? 0
  return {
    verb,
    resource: [apiGroup, resource, subresource].filter((part) => part !== undefined).join('/'),
    name,
    code,
    isForbidden: code === 403 || event.annotations?.['authorization.k8s.io/decision'] === 'forbid',
    pod: user.extra?.['authentication.kubernetes.io/pod-name']?.[0] ?? '',
    atMs: Date.parse(event.requestReceivedTimestamp),
  }
}

/** Of these calls those that wrote something but the renewal of a Lease. */
export function writesIn(calls: readonly Audited[]): readonly Audited[] {
  return calls.filter(
    ({ verb, resource }) =>
      !['get', 'list', 'watch'].includes(verb) && resource !== 'coordination.k8s.io/leases',
  )
}
