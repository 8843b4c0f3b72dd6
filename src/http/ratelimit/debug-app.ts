// The debug port of the rate-limit service: the active rules, the statistics and the top values.
// Read-only.
import type { Express } from 'express'
import type { Log } from '../../telemetry/log.ts'
import { errorHandler } from '../error-handler.ts'
import { bareApp } from '../bare-app.ts'
import { sendText, rejectUnmatched } from './plain-responses.ts'

/** Dependencies of the app; rendered strings end with a line feed. */
export interface DebugAppDeps {
  readonly renderRules: () => string
  readonly renderStats: () => string
  readonly renderTop: () => string
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
      about: 'the values with the most hits at each rule, in the last minute and this one, as JSON',
      render: deps.renderTop,
    },
  }
  const list = Object.entries(pages).map(([path, { about }]) => `${path}: ${about}\n`)
  const app = bareApp()
  app.get('/', (_req, res) => {
    sendText(res, 200, list.join(''))
  })
  for (const [path, { render }] of Object.entries(pages)) {
    app.get(path, (_req, res) => {
      sendText(res, 200, render())
    })
  }
  rejectUnmatched(app, Object.fromEntries(['/', ...Object.keys(pages)].map((path) => [path, READ])))
  app.use(errorHandler(deps))
  return app
}
