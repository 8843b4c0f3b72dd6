// The Express app of redirect pods: 404 or 405 for requests that the fast path does not handle.
import type { Express } from 'express'
import type { Log } from '../../telemetry/log.ts'
import { bareApp } from '../bare-app.ts'
import { errorHandler } from '../error-handler.ts'
import { rejectUnknownPath } from '../reject-unknown-path.ts'

/** Dependencies of the app. */
export interface RedirectAppDeps {
  readonly log: Log
  readonly baseUrl: string
}

/** Creates the app. Its listener sets the request id of every response beforehand. */
export function createRedirectApp(deps: RedirectAppDeps): Express {
  const app = bareApp()
  app.use(rejectUnknownPath(deps))
  app.use(errorHandler(deps))
  return app
}
