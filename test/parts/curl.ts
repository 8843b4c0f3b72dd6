// The part `curl`: what a newcomer's first commands are run with.
import { findAptPart } from './apt-part.ts'

/** Makes sure that curl can be run. */
export function findCurl(): Promise<string> {
  return findAptPart('curl')
}
