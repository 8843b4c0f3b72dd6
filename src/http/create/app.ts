// The Express app of create pods: the API, the pages, the documents, and 404 for every other path.
import type { Express, RequestHandler } from 'express'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { bareApp } from '../bare-app.ts'
import { errorHandler } from '../error-handler.ts'
import type { RequestLimits } from '../limit-requests.ts'
import { methodNotAllowed } from '../method-not-allowed.ts'
import { rejectUnknownPath } from '../reject-unknown-path.ts'
import { favicon } from '../pages/assets.ts'
import { type AbuseRouteDeps, getAbuse, postAbuse } from './abuse.ts'
import { getAsset, getFixed, robots } from './get-asset.ts'
import { getDocs, getOpenApi } from './get-docs.ts'
import { getHome, postHome } from './home.ts'
import { getProblem } from './get-problem.ts'
import { getQr } from './get-qr.ts'
import { type CreateRouteDeps, postLink } from './post-link.ts'
import { getSecurityTxt, SECURITY_TXT, type SecurityTxtDeps } from './security-txt.ts'

/** Dependencies of the app. */
export interface CreateAppDeps extends CreateRouteDeps, AbuseRouteDeps, SecurityTxtDeps {
  readonly limits: RequestLimits
  readonly metrics: Pick<Metrics, 'creates' | 'reports' | 'requestSeconds'>
  readonly log: Log
}

/** One path: its name in metrics and its handlers by method. GET also serves HEAD. */
interface Route {
  readonly path: string
  readonly name: string
  readonly handlers: Readonly<Partial<Record<'GET' | 'POST', RequestHandler>>>
}

/** One-segment paths that are pages and therefore not codes. */
export const servedPaths: ReadonlySet<string> = new Set(['/docs', '/abuse'])

function routesOf(deps: CreateAppDeps): Route[] {
  return [
    { path: '/v1/urls', name: 'urls', handlers: { POST: postLink(deps) } },
    { path: '/', name: 'home', handlers: { GET: getHome(deps), POST: postHome(deps) } },
    { path: '/abuse', name: 'abuse', handlers: { GET: getAbuse(), POST: postAbuse(deps) } },
    { path: '/docs', name: 'docs', handlers: { GET: getDocs(deps) } },
    { path: '/openapi.json', name: 'openapi', handlers: { GET: getOpenApi(deps) } },
    { path: '/problems/:name', name: 'problems', handlers: { GET: getProblem(deps) } },
    { path: '/robots.txt', name: 'robots', handlers: { GET: getFixed(robots) } },
    { path: SECURITY_TXT, name: 'security.txt', handlers: { GET: getSecurityTxt(deps) } },
    { path: '/favicon.ico', name: 'favicon', handlers: { GET: getFixed(favicon) } },
    { path: '/assets/:name', name: 'assets', handlers: { GET: getAsset(deps) } },
    { path: '/:code.svg', name: 'qr', handlers: { GET: getQr(deps) } },
  ]
}

/** Creates the app. */
export function createCreateApp(deps: CreateAppDeps): Express {
  const app = bareApp()
  app.set('etag', false)
  for (const { path, name, handlers } of routesOf(deps)) {
    // `app.all` would add a layer for each method of HTTP.
    const route = app.route(path).all(observeDuration(deps, name))
    if (handlers.GET !== undefined) route.get(handlers.GET)
    if (handlers.POST !== undefined) route.post(handlers.POST)
    route.all(methodNotAllowed(deps.baseUrl, allowOf(handlers)))
  }
  app.use(rejectUnknownPath(deps))
  app.use(errorHandler(deps))
  return app
}

function allowOf(handlers: Route['handlers']): string {
  const methods = [
    ...(handlers.GET === undefined ? [] : ['GET', 'HEAD']),
    ...(handlers.POST === undefined ? [] : ['POST']),
  ]
  return methods.join(', ')
}

function observeDuration({ metrics }: CreateAppDeps, route: string): RequestHandler {
  return (_req, res, next) => {
    const startedMs = performance.now()
    res.on('finish', () => {
      const seconds = (performance.now() - startedMs) / 1000
      metrics.requestSeconds.labels(route, String(res.statusCode)).observe(seconds)
    })
    next()
  }
}
