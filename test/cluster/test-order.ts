// The order of the cluster tests: the release that is not the shared one comes first, because it
// would uninstall the shared one; then the installation of the shared one by README.md. The other
// files follow by name, so that every run has one order.

const FIRST = ['/upgrade-external.test.ts', '/notes.test.ts']

/** A sequencer of Jest. */
export default class TestOrder {
  /** The tests in their order. */
  sort<T extends { readonly path: string }>(tests: Iterable<T>): readonly T[] {
    const key = ({ path }: T) => {
      const place = FIRST.findIndex((name) => path.endsWith(name))
      return place < 0 ? path : ` ${place}` // before every absolute path
    }
    return [...tests].sort((a, b) => (key(a) < key(b) ? -1 : 1))
  }

  /** Jest passes the results, which do not change the order. */
  cacheResults(): undefined {
    return undefined
  }
}
