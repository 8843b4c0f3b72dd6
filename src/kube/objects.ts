// Kubernetes objects in the JSON of the API server: times are strings, and fields that may be
// absent are optional. Contains only the fields that we read.

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

/** The owner of an object. */
interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller?: boolean
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

/** A namespaced resource, as it appears in paths. */
export interface Resource {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  readonly plural: string
}

/** The path of a resource, of one object, or of a subresource such as `status`. */
export function pathOf(
  { group, version, plural }: Resource,
  at: { readonly namespace: string; readonly name?: string; readonly subresource?: string },
): string {
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
  const segments = [at.name, at.subresource].filter((segment) => segment !== undefined)
  return [`${root}/namespaces/${encodeURIComponent(at.namespace)}/${plural}`]
    .concat(segments.map((segment) => encodeURIComponent(segment)))
    .join('/')
}

/** The owner reference of the object's controller, as `metav1.GetControllerOf` returns it. */
export function controllerOf({ metadata }: KubeObject): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)
}

/** `namespace/name`, the key of an object within its resource. */
export function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace}/${metadata.name}`
}

/** A string that differs between any two states of an object. */
export function versionOf({ metadata }: KubeObject): string {
  return `${metadata.uid} ${metadata.resourceVersion}`
}

/** The inverse of `keyOf`. */
export function splitKey(key: string): { namespace: string; name: string } {
  const slash = key.indexOf('/')
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}
