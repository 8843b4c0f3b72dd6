// The Express app of creating: the API, the pages, the documents, and the 404 of everything else.
import type { Express, RequestHandler } from 'express'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { bareApp } from '../bare-app.ts'
import { failedRequest } from '../failed-request.ts'
import { methodNotAllowed, refuseUnknownPath } from '../refuse-unknown-path.ts'
import { getAsset, getFavicon, getRobots } from './get-asset.ts'
import { getDocs, getOpenApi } from './get-docs.ts'
import { getHome, postHome } from './home.ts'
import { getProblem } from './get-problem.ts'
import { type CreateRouteDeps, POST_LINK_PATH } from './post-link.ts'

/** What the app needs. */
export interface CreateAppDeps extends CreateRouteDeps {
  readonly metrics: Pick<Metrics, 'creates' | 'requestSeconds'>
  readonly log: Log
}

/** One path: its name in metrics and its handlers by method. GET serves HEAD too. */
interface Route {
  readonly path: string
  readonly name: string
  readonly handlers: Readonly<Partial<Record<'GET' | 'POST', RequestHandler>>>
  /** Methods that are served, where others than these handlers serve them. */
  readonly allow?: string
}

/** Paths of one segment, without its parameter, that are pages and so no codes. */
export const servedPaths: ReadonlySet<string> = new Set(['/docs'])

function routesOf(deps: CreateAppDeps): Route[] {
  return [
    { path: POST_LINK_PATH, name: 'urls', handlers: {}, allow: 'POST' }, // POST has its own lane
    { path: '/', name: 'home', handlers: { GET: getHome(), POST: postHome(deps) } },
    { path: '/docs', name: 'docs', handlers: { GET: getDocs(deps) } },
    { path: '/openapi.json', name: 'openapi', handlers: { GET: getOpenApi(deps) } },
    { path: '/problems/:name', name: 'problems', handlers: { GET: getProblem(deps) } },
    { path: '/robots.txt', name: 'robots', handlers: { GET: getRobots() } },
    { path: '/favicon.ico', name: 'favicon', handlers: { GET: getFavicon() } },
    { path: '/assets/:name', name: 'assets', handlers: { GET: getAsset(deps) } },
  ]
}

/** Makes the app. Its listener presets the request id of every response. */
export function createCreateApp(deps: CreateAppDeps): Express {
  const app = bareApp()
  app.set('etag', false)
  for (const { path, name, handlers, allow } of routesOf(deps)) {
    app.all(path, measured(deps, name))
    if (handlers.GET !== undefined) app.get(path, handlers.GET)
    if (handlers.POST !== undefined) app.post(path, handlers.POST)
    app.all(path, methodNotAllowed(deps, allow ?? allowOf(handlers)))
  }
  app.use(refuseUnknownPath(deps))
  app.use(failedRequest(deps))
  return app
}

function allowOf(handlers: Route['handlers']): string {
  const methods = [
    ...(handlers.GET === undefined ? [] : ['GET', 'HEAD']),
    ...(handlers.POST === undefined ? [] : ['POST']),
  ]
  return methods.join(', ')
}

function measured({ metrics }: CreateAppDeps, route: string): RequestHandler {
  return (_req, res, next) => {
    const begunMs = performance.now()
    res.on('finish', () => {
      const seconds = (performance.now() - begunMs) / 1000
      metrics.requestSeconds.labels(route, String(res.statusCode)).observe(seconds)
    })
    next()
  }
}
