// Serves the route of the admin API to which `key` and `block` report their changes.
import { bareApp } from '../../../src/http/bare-app.ts'
import { actionRoutes } from '../../../src/http/admin/post-action.ts'
import { serveApp } from '../http/serve-app.ts'

/** The route. */
export interface ActionSink {
  /** The value of ADMIN_URL. */
  readonly url: string
  /** The fields of the lines so far. */
  readonly actions: readonly object[]
  readonly close: () => void
}

/** Starts serving. */
export async function startActionSink(): Promise<ActionSink> {
  const actions: object[] = []
  const log = { info: (fields: object) => void actions.push(fields) }
  const app = bareApp().use('/admin', actionRoutes({ log, baseUrl: '' }))
  return { ...(await serveApp(app)), actions }
}
