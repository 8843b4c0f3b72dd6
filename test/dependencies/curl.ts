// The dependency `curl`, which the README uses.
import { findAptDependency } from './apt.ts'

/** Finds or installs curl. Resolves with its command. */
export function findCurl(): Promise<string> {
  return findAptDependency('curl')
}
