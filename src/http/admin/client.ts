// Asks the admin API of a running process, for the operator's commands.
import { z } from 'zod'
import { OperatorError } from '../../process/role.ts'

/** How to reach the admin API. */
export interface AdminTarget {
  readonly url: string
  readonly token: string | undefined
}

const ANSWER_MS_MAX = 10_000
const problemShape = z.object({ detail: z.string() })

/** Sends a request; resolves to its answer's JSON, `undefined` for 204. Throws OperatorError. */
export async function askAdmin(
  target: AdminTarget,
  method: string,
  path: string,
): Promise<unknown> {
  const headers = target.token === undefined ? {} : { Authorization: `Bearer ${target.token}` }
  const signal = AbortSignal.timeout(ANSWER_MS_MAX)
  try {
    const answer = await fetch(new URL(path, target.url), { method, headers, signal })
    if (answer.status === 204) return undefined
    const body: unknown = await answer.json()
    if (answer.ok) return body
    const problem = problemShape.safeParse(body)
    const detail = problem.success ? problem.data.detail : 'the answer was no problem document'
    throw new OperatorError(`${method} ${path} was answered ${answer.status}: ${detail}`)
  } catch (error) {
    if (error instanceof OperatorError) throw error
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new OperatorError(
      `the admin API at ${target.url} cannot be reached (${why}): check ADMIN_URL`,
    )
  }
}
