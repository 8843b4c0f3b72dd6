// Settings of the controller: API server access, watched namespaces and leader election.
import { z } from 'zod'
import type { Setting } from '../config/config.ts'

const name = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const NAMESPACES_MAX = 32

function optional(about: string, allowed: string, fallback: string) {
  return { about, allowed, fallback, schema: z.string().optional() } satisfies Setting<
    string | undefined
  >
}

/** Settings of `controller`. */
export const controllerSettings = {
  KUBERNETES_SERVICE_HOST: optional(
    'host of the API server, which Kubernetes sets in every pod',
    'a host or an address',
    'unset outside a pod',
  ),
  KUBECONFIG: optional(
    'kubeconfig of the API server, for use outside a pod',
    'the path of a readable file',
    'unset: the service account of the pod',
  ),
  WATCH_NAMESPACES: {
    about: 'namespaces whose CodePools are reconciled',
    allowed: `1 to ${NAMESPACES_MAX} namespace names, separated by commas`,
    fallback: 'the namespace of the pod',
    schema: z
      .string()
      .transform((value) => [...new Set(value.split(',').map((item) => item.trim()))])
      .pipe(z.array(z.string().regex(name)).min(1).max(NAMESPACES_MAX))
      .optional(),
  },
  LEASE_NAME: {
    about: 'Lease of the leader election',
    allowed: 'a name in lower case, up to 63 letters, digits and -',
    fallback: 'curtail-controller',
    schema: z
      .string()
      .regex(name)
      .optional()
      .transform((value) => value ?? 'curtail-controller'),
  },
  REFILL_POD_TEMPLATE: {
    about: 'YAML file of the pod template of refill Jobs, reloaded when it changes',
    allowed: 'the path of a file',
    fallback: 'required',
    schema: z.string(),
  },
  CLUSTER_NAME: {
    about: 'name of this cluster if several share one code store',
    allowed: 'up to 63 lower-case letters, digits and -',
    fallback: 'none',
    schema: z
      .string()
      .regex(name)
      .optional()
      .transform((value) => (value === undefined ? '' : `${value}:`)),
  },
} as const satisfies Readonly<Record<string, Setting<unknown>>>
