// Settings of the controller: API server access, watched namespaces and leader election.
import * as z from 'zod'
import { type Setting, withDefault } from '../config/config.ts'

/** The name of a namespace, or of an object whose name is a DNS label. */
export const NAME_PATTERN = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const NAMESPACES_MAX = 32

function optionalSetting(about: string, allowed: string, fallback: string) {
  return { about, allowed, fallback, schema: z.string().optional() } satisfies Setting<
    string | undefined
  >
}

/** Settings of `controller`. */
export const controllerSettings = {
  KUBERNETES_SERVICE_HOST: optionalSetting(
    'host of the API server; Kubernetes sets this variable in every pod',
    'a host or an address',
    'unset outside a pod',
  ),
  KUBECONFIG: optionalSetting(
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
      .pipe(z.array(z.string().regex(NAME_PATTERN)).min(1).max(NAMESPACES_MAX))
      .optional(),
  },
  LEASE_NAME: withDefault({
    about: 'name of the Lease for leader election',
    allowed: 'up to 63 lower-case letters, digits and -',
    fallback: 'curtail-controller',
    schema: z.string().regex(NAME_PATTERN),
  }),
  REFILL_POD_TEMPLATE: {
    about: 'YAML file of the pod template for refill Jobs; reloaded when it changes',
    allowed: 'the path of a file',
    fallback: 'required',
    schema: z.string(),
  },
  CLUSTER_NAME: {
    about: 'name of this Kubernetes cluster, if several clusters share one Cassandra keyspace',
    allowed: 'up to 63 lower-case letters, digits and -',
    fallback: 'none',
    schema: z
      .string()
      .regex(NAME_PATTERN)
      .optional()
      .transform((value) => (value === undefined ? '' : `${value}:`)), // the prefix of pool owners
  },
} as const satisfies Readonly<Record<string, Setting<unknown>>>
