// Lists the objects of a resource in pages of bounded size. An expired list fails: the caller
// starts it over.
import { type KubeApi, ResponseTooLong } from './api.ts'
import { KubeError } from './kube-error.ts'
import type { ObjectCache } from './object-cache.ts'
import { type KubeObject, pathOf, type Resource } from './objects.ts'

const PAGE_OBJECTS = 500
const OBJECTS_MAX = 50_000
/** Maximum number of pages without objects: each page should have some. */
const EMPTY_PAGES_MAX = 100
const LIST_MS_MAX = 60_000

/** What to list, and the cache to fill. */
export interface ListOptions<T extends KubeObject> {
  readonly api: Pick<KubeApi, 'call'>
  readonly resource: Resource
  readonly namespace: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  /** Requests only the metadata of the objects: the server sends nothing else. @default false */
  readonly isMetadataOnly?: boolean
  /** Maximum number of objects in a page; reduced if a page is too long. @default 500 */
  readonly pageObjects?: number
  readonly cache: Pick<ObjectCache<T>, 'replace'>
  /** Selects the fields to cache; `managedFields` is removed, except from deleted objects. */
  readonly trim: (object: KubeObject) => T
  /** Called for each page, even for one that is too long. */
  readonly onPage: () => void
}

/** The query parameters that select objects. */
export function selectorsOf({
  labelSelector,
  fieldSelector,
}: Pick<ListOptions<KubeObject>, 'labelSelector' | 'fieldSelector'>) {
  return {
    ...(labelSelector !== undefined && { labelSelector }),
    ...(fieldSelector !== undefined && { fieldSelector }),
  }
}

/** The media type for metadata only: of single objects, as in a watch, or of a `List`. */
export function metadataType(suffix: '' | 'List'): string {
  return `application/json;as=PartialObjectMetadata${suffix};g=meta.k8s.io;v=v1`
}

/** Reads all objects page by page into the cache; returns the version to watch from. */
export async function listAll<T extends KubeObject>(
  options: ListOptions<T>,
  signal: AbortSignal,
): Promise<string> {
  for (let limit = options.pageObjects ?? PAGE_OBJECTS; ; limit = Math.ceil(limit / 2)) {
    try {
      return await listPages(options, { signal, limit })
    } catch (error) {
      // Smaller pages may fit. A token is valid only with its limit, so the list starts over.
      if (!(error instanceof ResponseTooLong) || limit === 1) throw error
      options.onPage()
    }
  }
}

async function listPages<T extends KubeObject>(
  options: ListOptions<T>,
  { signal, limit }: { signal: AbortSignal; limit: number },
): Promise<string> {
  const { api, resource, namespace, trim } = options
  const objects: T[] = []
  let continueToken = ''
  let emptyPages = 0
  const isAborted = () => signal.aborted
  while (!isAborted()) {
    const query = {
      ...selectorsOf(options),
      limit: String(limit),
      ...(continueToken !== '' && { continue: continueToken }),
    }
    const path = pathOf(resource, { namespace })
    const bounds = { msMax: LIST_MS_MAX, signal }
    const accept = options.isMetadataOnly === true && { accept: metadataType('List') }
    const transfer = { isForCache: true, ...bounds, ...accept }
    const page = await api.call({ method: 'GET', path, query, ...transfer })
    options.onPage()
    if (isAborted()) break
    const { items: given, metadata } = page as {
      items?: readonly KubeObject[] | null
      metadata?: { resourceVersion?: string; continue?: string }
    }
    const items = given ?? []
    for (const item of items) objects.push(trim(withoutManagedFields(item)))
    if (objects.length > OBJECTS_MAX)
      throw listError(`more than ${OBJECTS_MAX} objects`, 'TooManyObjects')
    if (items.length === 0 && ++emptyPages > EMPTY_PAGES_MAX)
      throw listError(`a list has more than ${EMPTY_PAGES_MAX} empty pages`, 'InvalidResponse')
    continueToken = metadata?.continue ?? ''
    if (continueToken === '') {
      if (metadata?.resourceVersion === undefined)
        throw listError('a list has no resourceVersion', 'InvalidResponse')
      options.cache.replace(objects)
      return metadata.resourceVersion
    }
  }
  throw listError('the list was aborted', 'Aborted')
}

/** Removes the record of an object's managers, because nothing reads it. */
export function withoutManagedFields(object: KubeObject): KubeObject {
  const { managedFields, ...metadata } = object.metadata as KubeObject['metadata'] & {
    managedFields?: unknown
  }
  return managedFields === undefined ? object : { ...object, metadata }
}

function listError(message: string, reason: string): KubeError {
  return new KubeError(message, { status: 0, reason })
}
