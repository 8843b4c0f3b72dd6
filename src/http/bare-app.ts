// An Express app without Express's optional features.
import express, { type Express } from 'express'

/** Creates an app without routes: paths match exactly, queries are not parsed. */
export function bareApp(): Express {
  const app = express()
  app.set('case sensitive routing', true)
  app.set('strict routing', true)
  app.set('query parser', false)
  app.set('x-powered-by', false)
  return app
}
