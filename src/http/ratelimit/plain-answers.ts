// The plain-text answers of the rate-limit service's apps, and what they refuse.
import type { Express, Response } from 'express'

/** Answers with plain text. */
export function answerText(res: Response, status: number, text: string): void {
  res.writeHead(status, {
    'Content-Type': 'text/plain; charset=utf-8',
    'X-Content-Type-Options': 'nosniff',
    'Content-Length': Buffer.byteLength(text),
  })
  res.end(text)
}

/** Refuses other methods of the paths that are served, and every other path. */
export function refuseTheRest(app: Express, allowed: Readonly<Record<string, string>>): void {
  for (const [path, allow] of Object.entries(allowed)) {
    app.all(path, (_req, res) => {
      res.setHeader('Allow', allow)
      answerText(res, 405, 'Method Not Allowed\n')
    })
  }
  app.use((_req, res) => {
    answerText(res, 404, 'Not Found\n')
  })
}
