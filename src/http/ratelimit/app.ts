// The HTTP front of the rate-limit service for callers without gRPC: POST /json and GET
// /healthcheck, with the reference's statuses. A caller's mistake gets its sentence, a defect no
// word.
import type { IncomingMessage } from 'node:http'
import type { Express, Response } from 'express'
import { type DecideLimits, LimitRequestError } from '../../limits/verdict.ts'
import type { Log } from '../../telemetry/log.ts'
import { failedRequest } from '../failed-request.ts'
import { readBody } from '../read-body.ts'
import { bareApp } from '../bare-app.ts'
import { answerText, refuseTheRest } from './plain-answers.ts'
import { parseJsonRequest } from './parse-json-request.ts'
import { renderJsonVerdict } from './render-json-verdict.ts'

/** What the app needs. */
export interface RateLimitAppDeps {
  readonly decide: DecideLimits
  readonly isHealthy: () => boolean
  /** Told of every error that is not the caller's. */
  readonly onDefect: (error: unknown) => void
  readonly log: Log
  /** Base of the addresses in problem documents. */
  readonly baseUrl: string
}

/** Makes the app. */
export function createRateLimitApp(deps: RateLimitAppDeps): Express {
  const app = bareApp()
  app.post('/json', async (req, res) => {
    await answerJson(deps, req, res)
  })
  app.get('/healthcheck', (_req, res) => {
    if (deps.isHealthy()) answerText(res, 200, 'OK')
    else answerText(res, 500, '')
  })
  refuseTheRest(app, { '/json': 'POST', '/healthcheck': 'GET, HEAD' })
  app.use(failedRequest(deps))
  return app
}

async function answerJson(deps: RateLimitAppDeps, req: IncomingMessage, res: Response) {
  const body = await readBody(req, res)
  if (body === 'aborted') return
  if (body === 'too-large') {
    answerText(res, 413, 'Request Entity Too Large\n')
    return
  }
  try {
    const verdict = await deps.decide(parseJsonRequest(body))
    const answer = renderJsonVerdict(verdict)
    res.writeHead(verdict.code === 'OK' ? 200 : 429, {
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(answer),
    })
    res.end(answer)
  } catch (error) {
    if (error instanceof LimitRequestError) {
      answerText(res, 400, `Bad Request\n${error.message}\n`)
    } else {
      deps.onDefect(error)
      answerText(res, 500, 'Internal Server Error\n')
    }
  }
}
