// An operator list in one data key of Secrets or ConfigMaps. A change writes an object only if it
// is still the version that was read; after a conflict, all objects are re-read and the change is
// decided with their current contents.
import { API_KEYS_LABEL } from '../../policies/api-keys.ts'
import {
  decodeDocument,
  type ListDocument,
  type ListTarget,
  UnknownOutcomeError,
} from '../../process/list-target.ts'
import { OperatorError } from '../../process/role.ts'
import { messageOf } from '../../resilience/message-of.ts'
import { type Pause, pause as defaultPause } from '../../resilience/deadline.ts'
import type { KubeApi } from '../api.ts'
import { hasStatus, KubeError } from '../kube-error.ts'
import { type KubeObject, pathOf } from '../objects.ts'

/** Which objects to change. */
export interface ObjectTargetOptions {
  readonly api: Pick<KubeApi, 'call'>
  readonly kind: 'Secret' | 'ConfigMap'
  readonly namespace: string
  /** The names of the objects, which must exist. */
  readonly names: readonly string[]
  readonly dataKey: string
  /** The setting that contains the names, for messages. */
  readonly setting: string
  /** Waits before a retry; replaced in tests. */
  readonly pause?: Pause
}

/** An object as the API server returns it. */
interface DataObject extends KubeObject {
  readonly data?: Readonly<Record<string, string>> | null
  readonly binaryData?: Readonly<Record<string, string>> | null
}

interface ReadObject {
  readonly object: DataObject
  readonly document: ListDocument
}

/** Below Kubernetes' maximum for the data of an object, 1 MiB. */
const DATA_BYTES_MAX = 900 * 1024
const RETRIES_MAX = 5
const RETRY_MS_MAX = 400

/** Creates the target. */
export function createObjectTarget(options: ObjectTargetOptions): ListTarget {
  const { names, setting, pause = defaultPause } = options
  const readAll = async () => {
    const read: ReadObject[] = []
    for (const name of names) read.push(await readObject(options, name))
    return read
  }
  const documentsOf = (read: readonly ReadObject[]) => read.map(({ document }) => document)
  return {
    read: async () => documentsOf(await readAll()),
    async update(decide) {
      const written = new Set<string>()
      for (let retries = 0; ; retries++) {
        try {
          const read = await readAll()
          const { contents, result } = decide(documentsOf(read))
          for (const { object, document } of read) {
            const content = contents.get(document.name)
            if (content === undefined) continue
            await writeObject(options, object, content)
            written.add(document.name)
          }
          return result
        } catch (error) {
          const isConflict = hasStatus(error, 409)
          if (isConflict && retries < RETRIES_MAX) await pause(Math.random() * RETRY_MS_MAX)
          else throw failedUpdate(options, { error, isConflict, written: [...written] })
        }
      }
    },
    whenFull:
      `an object has space for ${DATA_BYTES_MAX} bytes: create another one, and add its name to ` +
      setting,
  }
}

async function readObject(options: ObjectTargetOptions, name: string): Promise<ReadObject> {
  const { api, kind, namespace, dataKey } = options
  const shown = `${kind} ${namespace}/${name}`
  try {
    const path = pathOf(resourceOf(kind), { namespace, name })
    const object = (await api.call({ method: 'GET', path })) as DataObject
    const { [dataKey]: value = '', ...others } = object.data ?? {}
    const content = decodeDocument(Buffer.from(value, encodingOf(kind)))
    const otherValues = [...Object.values(others), ...Object.values(object.binaryData ?? {})]
    const otherBytes = otherValues.reduce((sum, one) => sum + Buffer.byteLength(one), 0)
    const bytesMax = Math.max(0, DATA_BYTES_MAX - otherBytes)
    return { object, document: { name: shown, content, bytesMax } }
  } catch (error) {
    throw new OperatorError(`Cannot read ${shown}: ${causeOf(options, name, error)}`)
  }
}

async function writeObject(
  options: ObjectTargetOptions,
  object: DataObject,
  content: string,
): Promise<void> {
  const { api, kind, namespace, dataKey } = options
  const { name } = object.metadata
  const value = kind === 'Secret' ? Buffer.from(content).toString('base64') : content
  try {
    await api.call({
      method: 'PUT',
      path: pathOf(resourceOf(kind), { namespace, name }),
      body: { ...object, data: { ...object.data, [dataKey]: value } }, // with its resourceVersion
    })
  } catch (error) {
    // A call whose response was lost is retried: the retry conflicts with what the call wrote. It
    // makes no difference if another client wrote the same.
    if (!hasStatus(error, 409)) throw error
    const current = await readObject(options, name).catch(() => undefined) // the caller re-reads
    if (current?.document.content !== content) throw error
  }
}

function failedUpdate(
  options: ObjectTargetOptions,
  failure: { error: unknown; isConflict: boolean; written: readonly string[] },
): Error {
  const { error, isConflict, written } = failure
  const { kind, namespace } = options
  const rest = written.length === 0 ? '' : `; ${written.join(', ')} changed already`
  if (error instanceof OperatorError && written.length > 0) {
    // After a conflict, the re-read or `decide` failed.
    return new UnknownOutcomeError(error.message + rest)
  }
  if (!(error instanceof KubeError)) return error as Error
  const cause = isConflict
    ? `other clients have changed the objects ${RETRIES_MAX + 1} times: retry the command`
    : causeOf(options, undefined, error)
  // The API server may have written the object, even if a proxy or etcd timed out.
  const isPossible = written.length > 0 || error.status === 0 || error.status >= 500
  const ErrorType = isPossible ? UnknownOutcomeError : OperatorError
  return new ErrorType(`Cannot write ${kind}s in namespace ${namespace}: ${cause}${rest}`)
}

/** Why a call failed, and what to do. */
function causeOf(options: ObjectTargetOptions, name: string | undefined, error: unknown): string {
  const { kind, namespace, setting } = options
  if (hasStatus(error, 404) && name !== undefined) {
    const created = kind === 'Secret' ? 'secret generic' : 'configmap'
    const command = `"kubectl create ${created} ${name} -n ${namespace}"`
    const label = `"kubectl label secret ${name} -n ${namespace} ${API_KEYS_LABEL}=true"`
    const labelled = kind === 'Secret' ? ` and, for RateLimitPolicies, ${label}` : ''
    return `it does not exist; create it with ${command}${labelled}, or change ${setting}`
  }
  if (hasStatus(error, 401)) return `the API server rejects the credentials: ${messageOf(error)}`
  if (!hasStatus(error, 403)) return messageOf(error)
  const { plural } = resourceOf(kind)
  const required = `the verbs get and update for ${plural} in namespace ${namespace}`
  return `permission is missing: the command requires ${required} (${messageOf(error)})`
}

function resourceOf(kind: ObjectTargetOptions['kind']) {
  return { group: '', version: 'v1', plural: kind === 'Secret' ? 'secrets' : 'configmaps' }
}

function encodingOf(kind: ObjectTargetOptions['kind']): BufferEncoding {
  return kind === 'Secret' ? 'base64' : 'utf8'
}
