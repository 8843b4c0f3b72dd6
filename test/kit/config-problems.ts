// The problems with which a call rejects its configuration.
import { ConfigError } from '../../src/config/config.ts'

/** The problems of the ConfigError that `call` throws; none if it returns. Throws other errors. */
export function configProblems(call: () => unknown): readonly string[] {
  try {
    call()
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  return []
}
