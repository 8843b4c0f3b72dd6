// How to reach the API server and as whom: by the files that every pod is given, read again as they
// change, or by a kubeconfig outside a cluster. Sends nothing itself.
import { readFile } from 'node:fs/promises'
import type { RequestOptions } from 'node:https'
import { isIPv6 } from 'node:net'
import { join } from 'node:path'

/** What a call needs; `tls` changes when certificates do. */
export interface Credentials {
  readonly server: string
  readonly headers: Readonly<Record<string, string>>
  readonly tls: TlsMaterial
}

/** What a connection is checked by, and shows. */
interface TlsMaterial {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly servername?: string
  readonly rejectUnauthorized?: boolean
}

/** A way to the API server. */
export interface ClusterAccess {
  /** The namespace that is ours. */
  readonly namespace: string
  /** Throws where a file cannot be read. */
  readonly read: () => Promise<Credentials>
  /** The token was refused: the next `read` reads all anew. */
  readonly forget: () => void
}

/** Where a pod finds its service account. */
const ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount'
/** Tokens are renewed long before they end, as client-go has it. */
const FILES_KEPT_MS = 60_000

/** Access of a pod. Throws where the process is not in one, with what is missing. */
export async function podAccess(given: {
  readonly host: string
  readonly port: string
  readonly nowMs: () => number
  readonly folder?: string
}): Promise<ClusterAccess> {
  const { host, port, nowMs, folder = ACCOUNT_FOLDER } = given
  const textOf = async (name: string) => (await readFile(join(folder, name), 'utf8')).trim()
  const namespace = await textOf('namespace')
  const server = `https://${isIPv6(host) ? `[${host}]` : host}:${port}`
  let kept: { readonly credentials: Credentials; readonly atMs: number } | undefined
  return {
    namespace,
    async read() {
      if (kept !== undefined && nowMs() - kept.atMs < FILES_KEPT_MS) return kept.credentials
      const [token, ca] = await Promise.all([textOf('token'), textOf('ca.crt')])
      const credentials = { server, headers: { Authorization: `Bearer ${token}` }, tls: { ca } }
      kept = { credentials, atMs: nowMs() }
      return credentials
    },
    forget() {
      kept = undefined
    },
  }
}

/**
 * Access by a kubeconfig file, with whatever way of logging in it names. The library that knows
 * them weighs 80 MB, so that pods, which have files, never load it. Throws what is wrong with it.
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
    forget: () => undefined, // nothing is kept
  }
}

function tlsOf(options: Readonly<Record<string, unknown>>): TlsMaterial {
  const textOf = (name: string) => {
    const value = options[name]
    if (typeof value === 'string') return { [name]: value }
    return Buffer.isBuffer(value) ? { [name]: value.toString('utf8') } : {}
  }
  const { rejectUnauthorized } = options
  return {
    ...textOf('ca'),
    ...textOf('cert'),
    ...textOf('key'),
    ...textOf('servername'),
    ...(typeof rejectUnauthorized === 'boolean' && { rejectUnauthorized }),
  }
}
