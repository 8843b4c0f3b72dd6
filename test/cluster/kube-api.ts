// Calls the test cluster's API server without kubectl, for tests with thousands of calls; also
// reads the controller's calls from its audit log.
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { openAccess } from '../../src/kube/access.ts'
import { createKubeApi, type KubeApi } from '../../src/kube/api.ts'
import { systemScheduler } from '../../src/kube/scheduler.ts'
import { createTransport } from '../../src/kube/transport.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { FULL_NAME, RELEASE } from './release.ts'

/** Opens the API as the cluster's administrator; the caller must call `close`. */
export async function openKubeApi(): Promise<{ api: KubeApi; close: () => void }> {
  const access = await openAccess({ KUBECONFIG: requiredVariable('KUBECONFIG') })
  const transport = createTransport(access)
  const api = createKubeApi({ transport, scheduler: systemScheduler, metrics: createMetrics() })
  return { api, close: transport.close }
}

/** An environment variable that run.ts sets. Throws if it is unset. */
export function requiredVariable(name: string): string {
  const value = process.env[name]
  if (value === undefined) throw new Error('run the cluster tests with npm run test:cluster')
  return value
}

/** One call from the audit log. */
export interface AuditedCall {
  readonly verb: string
  /** The resource with its API group, such as `batch/jobs` or `curtail.dev/codepools/status`. */
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

/** The state of reading the audit log: bytes read so far, and the controller's calls in them. */
const read: { bytes: number; readonly calls: AuditedCall[] } = { bytes: 0, calls: [] }

/** Every completed call of the controller that started at or after `sinceMs`. */
export async function readAuditedCalls(sinceMs = 0): Promise<readonly AuditedCall[]> {
  const path = join(requiredVariable('CLUSTER_LOGS'), 'components', 'audit.log')
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
      if (event?.user.username === CONTROLLER) read.calls.push(parseAuditEvent(event))
    }
  } finally {
    await file.close()
  }
  return read.calls.filter(({ atMs }) => atMs >= sinceMs)
}

function parseAuditEvent({ verb, user, objectRef = {}, ...event }: AuditEvent): AuditedCall {
  const { apiGroup = '', resource = '', subresource, name = '' } = objectRef
  const code = event.responseStatus?.code ?? 0
  return {
    verb,
    resource: [apiGroup, resource, subresource]
      .filter((segment) => segment !== undefined)
      .join('/'),
    name,
    code,
    isForbidden: code === 403 || event.annotations?.['authorization.k8s.io/decision'] === 'forbid',
    pod: user.extra?.['authentication.kubernetes.io/pod-name']?.[0] ?? '',
    atMs: Date.parse(event.requestReceivedTimestamp),
  }
}

/** The calls that write, without updates of Leases. */
export function writeCalls(calls: readonly AuditedCall[]): readonly AuditedCall[] {
  return calls.filter(
    ({ verb, resource }) =>
      !['get', 'list', 'watch'].includes(verb) && resource !== 'coordination.k8s.io/leases',
  )
}
