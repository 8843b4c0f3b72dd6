// The HTTP API of the rate-limit service for callers without gRPC: POST /json and GET /healthcheck,
// with envoyproxy/ratelimit's statuses. A 400 describes the caller's error; a 500 has no details.
import type { IncomingMessage } from 'node:http'
import type { Express, Response } from 'express'
import { type DecideLimits, LimitRequestError } from '../../limits/verdict.ts'
import type { Log } from '../../telemetry/log.ts'
import { errorHandler } from '../error-handler.ts'
import { readBody } from '../read-body.ts'
import { bareApp } from '../bare-app.ts'
import { sendText, rejectUnmatched } from './plain-responses.ts'
import { parseJsonRequest } from './parse-json-request.ts'
import { renderJsonVerdict } from './render-json-verdict.ts'

/** Dependencies of the app. */
export interface RateLimitAppDeps {
  readonly decide: DecideLimits
  readonly isHealthy: () => boolean
  /** Called with every error that is not the caller's. */
  readonly onDefect: (error: unknown) => void
  readonly log: Log
  /** Base of the URLs in problem documents. */
  readonly baseUrl: string
}

/** Creates the app. */
export function createRateLimitApp(deps: RateLimitAppDeps): Express {
  const app = bareApp()
  app.post('/json', async (req, res) => {
    await handleJson(deps, req, res)
  })
  app.get('/healthcheck', (_req, res) => {
    if (deps.isHealthy()) sendText(res, 200, 'OK')
    else sendText(res, 500, '')
  })
  rejectUnmatched(app, { '/json': 'POST', '/healthcheck': 'GET, HEAD' })
  app.use(errorHandler(deps))
  return app
}

async function handleJson(deps: RateLimitAppDeps, req: IncomingMessage, res: Response) {
  const body = await readBody(req, res)
  if (body === 'aborted') return
  if (body === 'too-large') {
    sendText(res, 413, 'Request Entity Too Large\n')
    return
  }
  try {
    const verdict = await deps.decide(parseJsonRequest(body))
    const json = renderJsonVerdict(verdict)
    res.writeHead(verdict.code === 'OK' ? 200 : 429, {
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(json),
    })
    res.end(json)
  } catch (error) {
    if (error instanceof LimitRequestError) {
      sendText(res, 400, `Bad Request\n${error.message}\n`)
    } else {
      deps.onDefect(error)
      sendText(res, 500, 'Internal Server Error\n')
    }
  }
}
