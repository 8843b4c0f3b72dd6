// GET / and POST /: the home page, and its form for browsers without JavaScript. The rules, the
// size limit and the outcomes are those of the API.
import type { Request, Response } from 'express'
import { setLimitHeaders } from '../limit-requests.ts'
import type { FormView } from '../pages/home-form.ts'
import { renderHomePage, type ShownLink } from '../pages/home.ts'
import { sendPage } from '../pages/send-page.ts'
import { inEachLanguage, stringsFor } from '../pages/strings/negotiate.ts'
import { type Problem, problemHeaders, problemTypes, sendProblem } from '../problem.ts'
import { bodyTooLarge, readBody } from '../read-body.ts'
import { admitCreate } from './admit-create.ts'
import { parseCreateBody } from './create-request.ts'
import { formType, notForm } from './decode-form.ts'
import { emptyForm, type ParsedForm, parseForm, placeProblem } from './home-form.ts'
import { createAndRender, type CreateRouteDeps, isEncoded, requestOf } from './post-link.ts'

/** The handler of GET /. */
export function getHome({ baseUrl, keys }: Pick<CreateRouteDeps, 'baseUrl' | 'keys'>) {
  const isKeyRequired = keys.isRequired
  const body = inEachLanguage((strings) =>
    renderHomePage({ strings, baseUrl, values: emptyForm, faults: {}, isKeyRequired }),
  )
  return (req: Request, res: Response): void => {
    sendPage(res, { status: 200, body: body(req), cacheControl: 'no-cache' })
  }
}

/** The handler of POST /. */
export function postHome(deps: CreateRouteDeps) {
  return async (req: Request, res: Response): Promise<void> => {
    const strings = stringsFor(req)
    const admission = admitCreate(deps, req)
    setLimitHeaders(res, admission.limited)
    if ('problem' in admission) {
      sendFaultyPage(deps, res, { strings, problem: admission.problem, values: emptyForm })
      return
    }
    if (!formType.test(req.headers['content-type'] ?? '') || isEncoded(req)) {
      deps.metrics.creates.inc({ result: 'unsupported-media-type' })
      sendProblem(res, { name: 'unsupported-media-type', detail: notForm }, deps.baseUrl)
      return
    }
    const bytes = await readBody(req, res)
    if (bytes === 'aborted') return
    if (bytes === 'too-large') {
      sendFaultyPage(deps, res, { strings, problem: bodyTooLarge, values: emptyForm })
      return
    }
    const form = parseForm(bytes, Date.now())
    const created = await createFromForm(deps, form, admission.creatorId)
    if ('problem' in created) {
      sendFaultyPage(deps, res, { strings, problem: created.problem, values: form.entered })
      return
    }
    const { baseUrl } = deps
    sendPage(res, {
      status: 201,
      body: renderHomePage({ strings, baseUrl, values: emptyForm, faults: {}, created }),
      cacheControl: 'no-store',
      headers: { Location: created.shortUrl },
    })
  }
}

async function createFromForm(
  deps: CreateRouteDeps,
  { parsed }: ParsedForm,
  creatorId: bigint | null,
): Promise<ShownLink | { problem: Problem }> {
  if ('problem' in parsed) return parsed
  const validated = parseCreateBody(deps.schema, parsed.value)
  if ('problem' in validated) return validated
  const request = { ...requestOf(validated.body), creatorId, idempotencyKey: undefined }
  const created = await createAndRender(deps, request)
  if ('problem' in created) return created
  const { shortUrl, expiresAt } = created
  return { shortUrl, expiresAt, longUrl: validated.body.long_url }
}

interface FaultyForm extends Pick<FormView, 'strings' | 'values'> {
  readonly problem: Problem
}

function sendFaultyPage(
  { baseUrl, metrics, keys }: CreateRouteDeps,
  res: Response,
  { problem, strings, values }: FaultyForm,
): void {
  metrics.creates.inc({ result: problem.name })
  const isKeyRequired = keys.isRequired
  const placed = placeProblem(problem, { entered: values, strings })
  sendPage(res, {
    status: problemTypes[problem.name].status,
    body: renderHomePage({ strings, baseUrl, values, ...placed, isKeyRequired }),
    cacheControl: 'no-store',
    headers: problemHeaders(problem),
  })
}
