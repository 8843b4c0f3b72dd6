// Asks the admin API of a running process, for the operator's commands.
import { z } from 'zod'
import { OperatorError } from '../process/role.ts'

/** How to reach the admin API. */
export interface AdminTarget {
  readonly url: string
  readonly token: string | undefined
}

const ANSWER_MS_MAX = 10_000
const problemShape = z.object({ detail: z.string() })

/** One request to it. */
export interface AdminRequest {
  readonly method: string
  readonly path: string
}

/**
 * Sends a request; resolves to its answer's JSON, `undefined` for 204, which must have the shape
 * that an admin API gives it. Throws OperatorError.
 */
export async function askAdmin<T>(
  target: AdminTarget,
  { method, path }: AdminRequest,
  shape: z.ZodType<T>,
): Promise<T> {
  const { ok, status, text } = await exchange(target, { method, path })
  const body = status === 204 ? undefined : parseJson(text)
  const wanted = shape.safeParse(body)
  if (ok && wanted.success) return wanted.data
  const problem = problemShape.safeParse(body)
  const why =
    !ok && problem.success
      ? `: ${problem.data.detail}`
      : `, but not as Curtail's admin API answers: check ADMIN_URL, ${target.url}`
  throw new OperatorError(`${method} ${path} was answered ${status}${why}`)
}

async function exchange(
  target: AdminTarget,
  { method, path }: AdminRequest,
): Promise<{ ok: boolean; status: number; text: string }> {
  const headers = target.token === undefined ? {} : { Authorization: `Bearer ${target.token}` }
  const signal = AbortSignal.timeout(ANSWER_MS_MAX)
  try {
    const answer = await fetch(new URL(path, target.url), { method, headers, signal })
    return { ok: answer.ok, status: answer.status, text: await answer.text() }
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new OperatorError(
      `the admin API at ${target.url} cannot be reached (${why}): check ADMIN_URL`,
    )
  }
}

/** The value of a JSON text; the text itself, which is no answer of ours, where it is none. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}
