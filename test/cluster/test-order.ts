// The order of the cluster tests: the release that is not the shared one comes first, because it
// would uninstall the shared one; the other files follow by name, so that every run has one order.

const FIRST = '/upgrade-external.test.ts'

/** A sequencer of Jest. */
export default class TestOrder {
  /** The tests in their order. */
  sort<T extends { readonly path: string }>(tests: Iterable<T>): readonly T[] {
    const key = ({ path }: T) => (path.endsWith(FIRST) ? '' : path)
    return [...tests].sort((a, b) => (key(a) < key(b) ? -1 : 1))
  }

  /** Jest passes the results, which do not change the order. */
  cacheResults(): undefined {
    return undefined
  }
}
