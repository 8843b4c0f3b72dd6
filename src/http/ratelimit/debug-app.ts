// The debug port of the rate-limit service: what rules are in force and what has been counted, as
// plain text for people. Changes nothing.
import type { Express } from 'express'
import type { Log } from '../../telemetry/log.ts'
import { failedRequest } from '../failed-request.ts'
import { bareApp } from '../bare-app.ts'
import { answerText, refuseTheRest } from './plain-answers.ts'

/** What the app needs; texts end with a line feed. */
export interface DebugAppDeps {
  readonly renderRules: () => string
  readonly renderStats: () => string
  readonly log: Log
  /** Base of the addresses in problem documents. */
  readonly baseUrl: string
}

const READ = 'GET, HEAD'

/** Makes the app. */
export function createDebugApp(deps: DebugAppDeps): Express {
  const pages = {
    '/rlconfig': {
      about: 'the rules in force, and what is wrong in newer files',
      text: deps.renderRules,
    },
    '/stats': { about: 'what has been counted', text: deps.renderStats },
  }
  const list = Object.entries(pages).map(([path, { about }]) => `${path}: ${about}\n`)
  const app = bareApp()
  app.get('/', (_req, res) => {
    answerText(res, 200, list.join(''))
  })
  for (const [path, { text }] of Object.entries(pages)) {
    app.get(path, (_req, res) => {
      answerText(res, 200, text())
    })
  }
  refuseTheRest(app, { '/': READ, '/rlconfig': READ, '/stats': READ })
  app.use(failedRequest(deps))
  return app
}
