// Kubernetes objects as the API server writes them in JSON: times are texts, and what may be absent
// says so. Only what we read is here.

/** `metadata` of an object. */
export interface ObjectMeta {
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly resourceVersion: string
  readonly generation?: number
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly ownerReferences?: readonly OwnerReference[]
}

/** To whom an object belongs. */
interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller?: boolean
  readonly blockOwnerDeletion?: boolean
}

/** Any object. */
export interface KubeObject {
  readonly metadata: ObjectMeta
}

/** One condition of a status. */
export interface Condition {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: string
  readonly message: string
  readonly lastTransitionTime: string
  readonly observedGeneration: number
}

/** A kind of objects in a namespace, as paths name it. */
export interface Resource {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  readonly plural: string
}

/** The path of a resource, of one object of it, or of a part of that such as `status`. */
export function pathOf(
  { group, version, plural }: Resource,
  at: { readonly namespace: string; readonly name?: string; readonly part?: string },
): string {
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
  const parts = [at.name, at.part].filter((part) => part !== undefined)
  return [`${root}/namespaces/${encodeURIComponent(at.namespace)}/${plural}`]
    .concat(parts.map((part) => encodeURIComponent(part)))
    .join('/')
}

/** `namespace/name`, by which objects are known among their kind. */
export function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace}/${metadata.name}`
}

/** A text that tells two states of an object apart. */
export function versionOf({ metadata }: KubeObject): string {
  return `${metadata.uid} ${metadata.resourceVersion}`
}

/** The inverse of `keyOf`. */
export function splitKey(key: string): { namespace: string; name: string } {
  const slash = key.indexOf('/')
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}
