// The dependency `curl`: it runs the first commands of the README.
import { findAptDependency } from './apt.ts'

/** Makes sure that curl can be run. */
export function findCurl(): Promise<string> {
  return findAptDependency('curl')
}
