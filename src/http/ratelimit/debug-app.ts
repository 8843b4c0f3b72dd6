// The debug port of the rate-limit service: the active rules, the statistics, the top values, and
// an explanation of a descriptor. Read-only.
import type { IncomingMessage } from 'node:http'
import type { Express, Response } from 'express'
import type { ExplainLimits } from '../../limiter/decide/explain-limits.ts'
import type { Log } from '../../telemetry/log.ts'
import { errorHandler } from '../error-handler.ts'
import { bareApp } from '../bare-app.ts'
import { parseDescriptorQuery } from './parse-descriptor-query.ts'
import { sendText, rejectUnmatched } from './plain-responses.ts'

/** Dependencies of the app; rendered strings end with a line feed. */
export interface DebugAppDeps {
  readonly renderRules: () => string
  readonly renderStats: () => string
  readonly renderTop: () => string
  readonly explain: ExplainLimits
  readonly log: Log
  /** Base of the URLs in problem documents. */
  readonly baseUrl: string
}

const READ = 'GET, HEAD'

/** Creates the app. */
export function createDebugApp(deps: DebugAppDeps): Express {
  const pages = {
    '/rlconfig': {
      about: 'the active rules, and the faults of newer files',
      render: deps.renderRules,
    },
    '/stats': { about: 'the statistics', render: deps.renderStats },
    '/top': {
      about: 'the values with the most hits at each rule in the last two minutes, as JSON',
      render: deps.renderTop,
    },
  }
  const explainAbout =
    '/explain?domain=D&descriptor=k=v,k=v: the rules that match, and their counters\n'
  const list = Object.entries(pages).map(([path, { about }]) => `${path}: ${about}\n`)
  const app = bareApp()
  app.get('/', (_req, res) => {
    sendText(res, 200, list.join('') + explainAbout)
  })
  for (const [path, { render }] of Object.entries(pages)) {
    app.get(path, (_req, res) => {
      sendText(res, 200, render())
    })
  }
  app.get('/explain', async (req, res) => {
    await sendExplanation(deps.explain, req, res)
  })
  const paths = ['/', '/explain', ...Object.keys(pages)]
  rejectUnmatched(app, Object.fromEntries(paths.map((path) => [path, READ])))
  app.use(errorHandler(deps))
  return app
}

async function sendExplanation(explain: ExplainLimits, req: IncomingMessage, res: Response) {
  const request = parseDescriptorQuery(req)
  if ('fault' in request) {
    sendText(res, 400, `${request.fault}\n`)
    return
  }
  const lines = await explain(request)
  sendText(res, 200, lines.map((line) => `${line}\n`).join(''))
}
