// What an operator does to a link: shows, disables, enables, deletes it. Each may be repeated.
import type { Link } from '../links/link.ts'
import type { LinkStore } from '../links/link-store.ts'
import type { Clock } from '../resilience/deadline.ts'
import { answerOf } from '../resilience/retry-until-deadline.ts'

/** The record afterwards, that there is none, or that not all confirmed it: repeat it. */
export type LinkAnswer =
  | { readonly kind: 'link'; readonly link: Link }
  | { readonly kind: 'not-found' }
  | { readonly kind: 'store-unavailable' }

/** What an operator can do. */
export interface LinkOperations {
  readonly show: (code: string) => Promise<LinkAnswer>
  readonly disable: (code: string) => Promise<LinkAnswer>
  readonly enable: (code: string) => Promise<LinkAnswer>
  readonly erase: (code: string) => Promise<LinkAnswer>
}

/** What the operations need. */
export interface OperateDeps {
  readonly links: Pick<LinkStore, 'readSerial' | 'setDisabled' | 'erase'>
  readonly nowMs: Clock
  /**
   * Told of every code whose record has changed, or may have. Resolves to whether whoever remembers
   * the link is known to have forgotten it: only then the change is acknowledged. It never rejects.
   */
  readonly onChanged: (code: string) => Promise<boolean> | boolean
}

/** The operations over a store. */
export function createLinkOperations(deps: OperateDeps): LinkOperations {
  const read = async (call: Promise<Link | undefined>): Promise<LinkAnswer> => {
    const link = await answerOf(call)
    if (link === 'failed') return { kind: 'store-unavailable' }
    return link === undefined ? { kind: 'not-found' } : { kind: 'link', link }
  }
  const change = async (code: string, call: Promise<Link | undefined>): Promise<LinkAnswer> => {
    const answer = await read(call)
    if (answer.kind === 'not-found') return answer
    return (await deps.onChanged(code)) ? answer : { kind: 'store-unavailable' }
  }
  return {
    show: (code) => read(deps.links.readSerial(code)),
    disable: (code) => change(code, deps.links.setDisabled({ code, disabledAtMs: deps.nowMs() })),
    enable: (code) => change(code, deps.links.setDisabled({ code, disabledAtMs: null })),
    erase: (code) => change(code, deps.links.erase({ code, deletedAtMs: deps.nowMs() })),
  }
}
