// An Express app without what nobody asked for.
import express, { type Express } from 'express'

/** Makes an app without routes: paths are matched to the letter, queries are not parsed. */
export function bareApp(): Express {
  const app = express()
  app.set('case sensitive routing', true)
  app.set('strict routing', true)
  app.set('query parser', false)
  app.set('x-powered-by', false)
  return app
}
