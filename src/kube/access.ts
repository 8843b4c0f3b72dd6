// Address and credentials of the API server: in a pod from the mounted service account, which is
// re-read when it changes; outside a cluster from a kubeconfig. Sends no requests.
import { readFile } from 'node:fs/promises'
import type { RequestOptions } from 'node:https'
import { isIPv6 } from 'node:net'
import { join } from 'node:path'

/** What a call needs; `tls` changes when the certificates change. */
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
  /** The namespace of this process. */
  readonly namespace: string
  /** Throws if a file cannot be read. */
  readonly read: () => Promise<Credentials>
  /** The server rejected the token: the next `read` re-reads everything. */
  readonly invalidate: () => void
}

/** Where Kubernetes mounts the service account. */
const ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount'
/** client-go's value: tokens are renewed long before they expire. */
const FILES_CACHE_MS = 60_000

/** Access from within a pod. Throws outside a pod, and names the missing file. */
export async function podAccess(deps: {
  readonly host: string
  readonly port: string
  readonly nowMs: () => number
  readonly folder?: string
}): Promise<ClusterAccess> {
  const { host, port, nowMs, folder = ACCOUNT_FOLDER } = deps
  const readText = async (name: string) => (await readFile(join(folder, name), 'utf8')).trim()
  const namespace = await readText('namespace')
  const server = `https://${isIPv6(host) ? `[${host}]` : host}:${port}`
  let cached: { readonly credentials: Credentials; readonly atMs: number } | undefined
  return {
    namespace,
    async read() {
      if (cached !== undefined && nowMs() - cached.atMs < FILES_CACHE_MS) return cached.credentials
      const [token, ca] = await Promise.all([readText('token'), readText('ca.crt')])
      const credentials = { server, headers: { Authorization: `Bearer ${token}` }, tls: { ca } }
      cached = { credentials, atMs: nowMs() }
      return credentials
    },
    invalidate() {
      cached = undefined
    },
  }
}

/**
 * Access through a kubeconfig file, with any authentication method that it names. The library that
 * implements them takes 80 MB, so pods never load it. Throws if the kubeconfig is invalid.
 */
export async function fileAccess(path: string): Promise<ClusterAccess> {
  const { KubeConfig } = await import('@kubernetes/client-node')
  const config = new KubeConfig()
  config.loadFromFile(path)
  const cluster = config.getCurrentCluster()
  if (cluster === null) throw new Error('its current context names no cluster')
  const context = config.getContextObject(config.getCurrentContext())
  return {
    namespace: context?.namespace ?? 'default',
    async read() {
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
    },
    invalidate: () => undefined, // nothing is cached
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
