// GET /problems/{name}: the meaning of a problem type, from the table of problem types.
import type { Request, Response } from 'express'
import { sendNotFound } from '../not-found.ts'
import { renderProblemPage } from '../pages/problem.ts'
import { CACHED_BRIEFLY, sendPage } from '../pages/send-page.ts'
import { problemTypes } from '../problem.ts'
import type { CreateRouteDeps } from './post-link.ts'

/** The handler of the route. */
export function getProblem({ baseUrl }: Pick<CreateRouteDeps, 'baseUrl'>) {
  const pages: ReadonlyMap<string, string> = new Map(
    Object.entries(problemTypes).map(([name, type]) => {
      return [name, renderProblemPage(name, `${baseUrl}/problems/${name}`, type)]
    }),
  )
  return (req: Request, res: Response): void => {
    const body = pages.get(String(req.params['name']))
    if (body === undefined) sendNotFound(req, res, baseUrl)
    else sendPage(res, { status: 200, body, cacheControl: CACHED_BRIEFLY })
  }
}
