// Selects the access to the API server from the settings: as a pod, or through a kubeconfig.
import type { ConfigOf } from '../config/config.ts'
import { OperatorError } from '../process/role.ts'
import { type ClusterAccess, fileAccess, podAccess } from './access.ts'
import type { controllerSettings } from './settings.ts'

/** Opens the configured access. Throws OperatorError. */
export async function openAccess(
  config: Pick<
    ConfigOf<typeof controllerSettings>,
    'KUBECONFIG' | 'KUBERNETES_SERVICE_HOST' | 'KUBERNETES_SERVICE_PORT'
  >,
): Promise<ClusterAccess> {
  const { KUBECONFIG, KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = config
  try {
    if (KUBECONFIG !== undefined) return await fileAccess(KUBECONFIG)
    if (host === undefined) throw new Error('KUBERNETES_SERVICE_HOST is not set')
    return await podAccess({ host, port: port ?? '443', nowMs: () => performance.now() })
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error)
    throw new OperatorError(
      `the API server cannot be reached: ${cause}; run in a pod with a service account, or set ` +
        'KUBECONFIG to a readable kubeconfig',
    )
  }
}
