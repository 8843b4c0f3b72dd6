// Opens the operator list that the settings of a command name: files, or objects in Kubernetes.
// Exactly one of the two settings must be set, so that a command cannot change a list that the pods
// do not read.
import * as z from 'zod'
import { type DependentSettings, dependentSettings, type Setting } from '../../config/config.ts'
import { createFileTarget } from '../../process/list-file-target.ts'
import type { ListTarget } from '../../process/list-target.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { openAccess } from '../access.ts'
import { createKubeApi } from '../api.ts'
import { systemScheduler } from '../scheduler.ts'
import { createTransport } from '../transport.ts'
import { createObjectTarget, type ObjectTargetOptions } from './object-target.ts'

/** A kind of list. */
export interface ListKind {
  /** The setting with the path. */
  readonly fileSetting: string
  /** The setting with the names of objects. */
  readonly objectSetting: string
  readonly kind: ObjectTargetOptions['kind']
  /** The data key in an object, and the name of the file in a folder. */
  readonly dataKey: string
  /** The mode of a new file. */
  readonly mode: number
}

/** The settings of a command that select the list. */
interface ListConfig {
  readonly path: string | undefined
  readonly names: readonly string[] | undefined
  readonly KUBECONFIG: string | undefined
  readonly KUBERNETES_SERVICE_HOST: string | undefined
}

const OBJECTS_MAX = 64
/** The name of a Secret or ConfigMap. */
const OBJECT_NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/

/** A setting that contains names of objects in Kubernetes. */
export function objectNamesSetting(about: string): Setting<string[] | undefined> {
  return {
    about,
    allowed: `1 to ${OBJECTS_MAX} names, separated by commas`,
    fallback: 'unset',
    schema: z
      .string()
      .transform((value) => [...new Set(value.split(',').map((item) => item.trim()))])
      .pipe(z.array(z.string().regex(OBJECT_NAME)).min(1).max(OBJECTS_MAX))
      .optional(),
  }
}

/** The check that exactly one of the two settings is set. */
export function oneListRequired(
  list: ListKind,
  settings: Readonly<Record<string, Setting<unknown>>>,
): DependentSettings {
  const { fileSetting, objectSetting, kind } = list
  return dependentSettings(settings, (config) => {
    const values = [config[fileSetting], config[objectSetting]]
    const count = values.filter((value) => value !== undefined).length
    if (count === 1) return []
    const state = count === 0 ? 'neither of them is set' : 'both are set'
    const file = `${fileSetting} (a file or folder, the same as that of the service)`
    const choice = `${file} or ${objectSetting} (${kind}s in Kubernetes)`
    return [`set one of ${choice}: ${state}`]
  })
}

/** Opens the list, and calls `use` with it. Throws OperatorError. */
export async function withListTarget<T>(
  list: ListKind,
  config: ListConfig,
  use: (target: ListTarget) => Promise<T>,
): Promise<T> {
  const { path, names = [] } = config
  const { kind, dataKey, mode, objectSetting } = list
  if (path !== undefined) return use(createFileTarget({ path, nameInFolder: dataKey, mode }))
  const access = await openAccess({
    ...(config.KUBECONFIG !== undefined && { KUBECONFIG: config.KUBECONFIG }),
    ...(config.KUBERNETES_SERVICE_HOST !== undefined && {
      KUBERNETES_SERVICE_HOST: config.KUBERNETES_SERVICE_HOST,
    }),
  })
  const transport = createTransport(access)
  try {
    const metrics = createMetrics()
    const api = createKubeApi({ transport, scheduler: systemScheduler, metrics })
    const { namespace } = access
    const setting = objectSetting
    return await use(createObjectTarget({ api, kind, namespace, names, dataKey, setting }))
  } finally {
    transport.close()
  }
}
