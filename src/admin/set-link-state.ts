// The operator's operations on a link: show, disable, enable, delete. All are idempotent.
import type { Link } from '../links/link.ts'
import type { LinkStore } from '../links/link-store.ts'
import type { Clock } from '../resilience/deadline.ts'
import { resultOrFailed } from '../resilience/retry-until-deadline.ts'

/**
 * The record after the operation. `store-unavailable`: the store has not confirmed it.
 * `cache-unavailable`: the store has confirmed it, but the caches have not confirmed the
 * invalidation. In both cases the client must retry.
 */
export type LinkResult =
  | { readonly kind: 'link'; readonly link: Link }
  | { readonly kind: 'not-found' }
  | { readonly kind: 'store-unavailable' | 'cache-unavailable' }

/** The operations on a link. */
export interface LinkOperations {
  readonly show: (code: string) => Promise<LinkResult>
  readonly disable: (code: string) => Promise<LinkResult>
  readonly enable: (code: string) => Promise<LinkResult>
  /** Deletes a link: erases its target, but keeps its code reserved. */
  readonly erase: (code: string) => Promise<LinkResult>
}

/** Dependencies of the operations. */
export interface LinkOperationsDeps {
  readonly links: Pick<LinkStore, 'readSerial' | 'setDisabled' | 'erase'>
  readonly nowMs: Clock
  /**
   * Called for every code whose record may have changed. Resolves to whether all caches confirmed
   * the invalidation; only then is the change acknowledged. Never rejects.
   */
  readonly onChanged: (code: string) => Promise<boolean> | boolean
}

/** Creates the operations on a store. */
export function createLinkOperations(deps: LinkOperationsDeps): LinkOperations {
  const read = async (call: Promise<Link | undefined>): Promise<LinkResult> => {
    const link = await resultOrFailed(call)
    if (link === 'failed') return { kind: 'store-unavailable' }
    return link === undefined ? { kind: 'not-found' } : { kind: 'link', link }
  }
  const change = async (code: string, call: Promise<Link | undefined>): Promise<LinkResult> => {
    const result = await read(call)
    if (result.kind === 'not-found') return result
    const isConfirmed = await deps.onChanged(code)
    return isConfirmed || result.kind !== 'link' ? result : { kind: 'cache-unavailable' }
  }
  return {
    show: (code) => read(deps.links.readSerial(code)),
    disable: (code) => change(code, deps.links.setDisabled({ code, disabledAtMs: deps.nowMs() })),
    enable: (code) => change(code, deps.links.setDisabled({ code, disabledAtMs: null })),
    erase: (code) => change(code, deps.links.erase({ code, deletedAtMs: deps.nowMs() })),
  }
}
