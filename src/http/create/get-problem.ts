// GET /problems/{name}: the meaning of a problem type, from the table of problem types.
import type { Request, Response } from 'express'
import { sendNotFound } from '../not-found.ts'
import { renderProblemPage } from '../pages/problem.ts'
import { CACHED_BRIEFLY, sendPage } from '../pages/send-page.ts'
import { inEachLanguage } from '../pages/strings/negotiate.ts'
import { type ProblemName, problemTypes } from '../problem.ts'
import type { CreateRouteDeps } from './post-link.ts'

/** The handler of the route. */
export function getProblem({ baseUrl }: Pick<CreateRouteDeps, 'baseUrl'>) {
  const names = Object.keys(problemTypes) as ProblemName[]
  const pages = inEachLanguage((strings): ReadonlyMap<string, string> => {
    const page = (name: ProblemName) =>
      renderProblemPage(
        { name, uri: `${baseUrl}/problems/${name}`, status: problemTypes[name].status },
        strings,
      )
    return new Map(names.map((name) => [name, page(name)]))
  })
  return (req: Request, res: Response): void => {
    const body = pages(req).get(String(req.params['name']))
    if (body === undefined) sendNotFound(req, res, baseUrl)
    else sendPage(res, { status: 200, body, cacheControl: CACHED_BRIEFLY })
  }
}
