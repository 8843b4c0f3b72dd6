// The Express app of redirecting: what the lane in front of it does not answer is not there.
import type { Express } from 'express'
import type { Log } from '../../telemetry/log.ts'
import { bareApp } from '../bare-app.ts'
import { failedRequest } from '../failed-request.ts'
import { refuseUnknownPath } from '../refuse-unknown-path.ts'

/** What the app needs. */
export interface RedirectAppDeps {
  readonly log: Log
  readonly baseUrl: string
}

/** Makes the app. Its listener presets the request id of every response. */
export function createRedirectApp(deps: RedirectAppDeps): Express {
  const app = bareApp()
  app.use(refuseUnknownPath(deps))
  app.use(failedRequest(deps))
  return app
}
