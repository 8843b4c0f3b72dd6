// The status of an object: compares it, and writes it by server-side apply.
import { APPLY, type KubeApi } from './api.ts'
import { type KubeObject, pathOf, type Resource } from './objects.ts'

/** Writes a status unless the object has changed since `object`. Throws KubeError. */
export async function applyStatus(
  api: Pick<KubeApi, 'call'>,
  resource: Resource & { readonly apiVersion: string; readonly kind: string },
  given: { readonly object: KubeObject; readonly status: object; readonly signal: AbortSignal },
): Promise<KubeObject> {
  const { object, status, signal } = given
  const { name, namespace, resourceVersion } = object.metadata
  const { apiVersion, kind } = resource
  return (await api.call({
    method: 'PATCH',
    path: pathOf(resource, { namespace, name, subresource: 'status' }),
    body: { apiVersion, kind, metadata: { name, namespace, resourceVersion }, status },
    ...APPLY,
    signal,
  })) as KubeObject
}

/** Whether two statuses are equal; the order of their fields does not matter. */
export function isSameStatus(one: object | undefined, other: object): boolean {
  return sorted(one) === sorted(other)
}

function sorted(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )
}
