// GET / and POST /: the page to shorten a link, and its form for browsers without JavaScript. The
// rules, the size and the outcomes are those of the API.
import type { Request, Response } from 'express'
import { type HomeView, renderHomePage, type ShownLink } from '../pages/home.ts'
import { sendPage } from '../pages/send-page.ts'
import { type Problem, problemHeaders, problemTypes, sendProblem } from '../problem.ts'
import { setLimitHeaders } from '../limit-requests.ts'
import { readBody } from '../read-body.ts'
import { parseCreateBody } from './create-request.ts'
import { emptyForm, type ParsedForm, parseForm, placeProblem } from './home-form.ts'
import {
  bodyTooLarge,
  type CreateRouteDeps,
  createdLink,
  isEncoded,
  notEncoded,
  requestOf,
} from './post-link.ts'

const formType = /^application\/x-www-form-urlencoded[\t ]*(;|$)/i

/** The handler of GET /. */
export function getHome() {
  const text = renderHomePage({ values: emptyForm, faults: {} })
  return (_req: Request, res: Response): void => {
    sendPage(res, { status: 200, text, cacheControl: 'no-cache' })
  }
}

/** The handler of POST /. */
export function postHome(deps: CreateRouteDeps) {
  return async (req: Request, res: Response): Promise<void> => {
    const limited = deps.limits.onCreate(req)
    setLimitHeaders(res, limited)
    if (limited.problem !== undefined) {
      sendFaultyPage(deps, res, { problem: limited.problem, values: emptyForm })
      return
    }
    if (!formType.test(req.headers['content-type'] ?? '') || isEncoded(req)) {
      const detail = `The Content-Type must be application/x-www-form-urlencoded, ${notEncoded}`
      deps.metrics.creates.inc({ outcome: 'unsupported-media-type' })
      sendProblem(res, { name: 'unsupported-media-type', detail }, deps.baseUrl)
      return
    }
    const bytes = await readBody(req, res)
    if (bytes === 'aborted') return
    if (bytes === 'too-large') {
      sendFaultyPage(deps, res, { problem: bodyTooLarge, values: emptyForm })
      return
    }
    const form = parseForm(bytes)
    const answer = await answerForm(deps, form)
    if ('problem' in answer) {
      sendFaultyPage(deps, res, { problem: answer.problem, values: form.entered })
      return
    }
    sendPage(res, {
      status: 201,
      text: renderHomePage({ values: emptyForm, faults: {}, created: answer }),
      cacheControl: 'no-store',
      headers: { Location: answer.shortUrl },
    })
  }
}

async function answerForm(
  deps: CreateRouteDeps,
  { parsed }: ParsedForm,
): Promise<ShownLink | { problem: Problem }> {
  if ('problem' in parsed) return parsed
  const checked = parseCreateBody(deps.schema, parsed.value)
  if ('problem' in checked) return checked
  const created = await createdLink(deps, requestOf(checked.body, undefined))
  if ('problem' in created) return created
  const { shortUrl, expiresAt } = created
  return { shortUrl, expiresAt, longUrl: checked.body.long_url }
}

function sendFaultyPage(
  { metrics }: CreateRouteDeps,
  res: Response,
  { problem, values }: { problem: Problem; values: HomeView['values'] },
): void {
  metrics.creates.inc({ outcome: problem.name })
  sendPage(res, {
    status: problemTypes[problem.name].status,
    text: renderHomePage({ values, ...placeProblem(problem) }),
    cacheControl: 'no-store',
    headers: problemHeaders(problem),
  })
}
