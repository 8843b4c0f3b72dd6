// Address and credentials of the API server, as @kubernetes/client-node reads them: in a pod from
// the mounted service account, elsewhere from a kubeconfig. Sends no requests.
import type { RequestOptions } from 'node:https'
import type { KubeConfig } from '@kubernetes/client-node'
import type { ConfigOf } from '../config/config.ts'
import { OperatorError } from '../process/role.ts'
import { messageOf } from '../resilience/message-of.ts'
import type { controllerSettings } from './settings.ts'

/** The API server's address, the headers that authenticate a call, and TLS options. */
export interface Credentials {
  readonly server: string
  readonly headers: Readonly<Record<string, string>>
  readonly tls: TlsMaterial
}

/** CA, client certificate and TLS options of a connection. */
interface TlsMaterial {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly servername?: string
  readonly rejectUnauthorized?: boolean
}

/** Access to the API server. */
export interface ClusterAccess {
  /** The namespace of the pod, or of the kubeconfig's current context. */
  readonly namespace: string
  /**
   * Reads credentials, or returns recent ones. Throws if they cannot be read. Has no deadline:
   * if a plugin of a kubeconfig hangs, calls hang, and the liveness probe fails.
   */
  readonly read: () => Promise<Credentials>
  /** Discards the credentials, after the server has rejected the token. */
  readonly invalidate: () => void
}

/** Maximum age of credentials; then they are re-read, because token and CA files are rotated. */
const CREDENTIALS_MS_MAX = 10_000

/**
 * Opens access with KUBECONFIG, or with the pod's service account if it is unset. Throws
 * OperatorError if the kubeconfig, or the service account, cannot be read.
 */
export async function openAccess(
  config: Partial<
    Pick<ConfigOf<typeof controllerSettings>, 'KUBECONFIG' | 'KUBERNETES_SERVICE_HOST'>
  >,
): Promise<ClusterAccess> {
  try {
    const { KubeConfig } = await import('@kubernetes/client-node')
    const load = () => {
      const loaded = new KubeConfig()
      if (config.KUBECONFIG !== undefined) loaded.loadFromFile(config.KUBECONFIG)
      else if (config.KUBERNETES_SERVICE_HOST !== undefined) loaded.loadFromCluster()
      else throw new Error('KUBERNETES_SERVICE_HOST is not set')
      return loaded
    }
    const access = createAccess(load)
    if (config.KUBECONFIG === undefined) await access.read() // fails without a service account
    return access
  } catch (error) {
    throw new OperatorError(
      `Cannot read the address and credentials of the API server: ${messageOf(error)}; run in a ` +
        'pod with a service account, or set KUBECONFIG to a readable file',
    )
  }
}

function createAccess(load: () => KubeConfig): ClusterAccess {
  let config: KubeConfig | undefined = load()
  let cached: { readonly credentials: Credentials; readonly untilMs: number } | undefined
  const context = config.getContextObject(config.getCurrentContext())
  return {
    namespace: context?.namespace?.trim() ?? 'default',
    async read() {
      if (cached !== undefined && performance.now() < cached.untilMs) return cached.credentials
      config ??= load()
      const credentials = await credentialsOf(config)
      cached = { credentials, untilMs: performance.now() + CREDENTIALS_MS_MAX }
      return credentials
    },
    invalidate() {
      cached = undefined
      config = undefined // the library caches tokens: the next read loads without them
    },
  }
}

async function credentialsOf(config: KubeConfig): Promise<Credentials> {
  const cluster = config.getCurrentCluster()
  if (cluster === null) throw new Error('the current context names no cluster')
  const options: RequestOptions = {}
  await config.applyToHTTPSOptions(options)
  const { auth, headers } = options
  const basic = typeof auth === 'string' ? Buffer.from(auth).toString('base64') : undefined
  return {
    server: cluster.server,
    headers: {
      ...(headers as Record<string, string> | undefined),
      ...(basic !== undefined && { Authorization: `Basic ${basic}` }),
    },
    tls: tlsOf({ ...options }),
  }
}

function tlsOf(options: Readonly<Record<string, unknown>>): TlsMaterial {
  const pick = (name: string) => {
    const value = options[name]
    if (typeof value === 'string') return { [name]: value }
    return Buffer.isBuffer(value) ? { [name]: value.toString('utf8') } : {}
  }
  const { rejectUnauthorized } = options
  return {
    ...pick('ca'),
    ...pick('cert'),
    ...pick('key'),
    ...pick('servername'),
    ...(typeof rejectUnauthorized === 'boolean' && { rejectUnauthorized }),
  }
}
