// `POST /admin/links/import`: imports a batch of links. A bad row does not affect the others.
import type { Request, RequestHandler, Response } from 'express'
import type { BatchImporter } from '../../transfer/import-batch.ts'
import { BATCH_BYTES_MAX, BATCH_ROWS_MAX, type ImportResult } from '../../transfer/import-result.ts'
import { invalidRequest } from '../field-faults.ts'
import { type Problem, sendProblem } from '../problem.ts'
import { jsonType } from '../read-body.ts'
import { recordAction, recordFailures } from './audit.ts'

/** Dependencies of the route. */
export interface ImportRouteDeps {
  readonly importBatch: BatchImporter
  /** Whether the store is available; if not, the batch fails immediately. @default always */
  readonly isStoreAvailable?: () => boolean
}

const ndjsonType = /^application\/x-ndjson[\t ]*(;|$)/i
const utf8 = new TextDecoder('utf-8', { fatal: true })

const wrongType: Problem = {
  name: 'unsupported-media-type',
  detail: 'The Content-Type must be application/x-ndjson or application/json, without encoding',
}
const tooLarge: Problem = {
  name: 'body-too-large',
  detail: `The body must have at most ${BATCH_BYTES_MAX} bytes`,
}
const malformed: Problem = {
  name: 'malformed-json',
  detail: 'The body must be links in UTF-8: one JSON object per line, or a JSON array of objects',
}
const wrongRowCount: Problem = invalidRequest([
  {
    ...{ pointer: '', code: 'out-of-range' },
    detail: `A batch must have 1 to ${BATCH_ROWS_MAX} links`,
  },
])
const unavailable: Problem = {
  name: 'store-unavailable',
  detail: 'The store is unavailable, and no link was imported: retry the request',
}

/** Responds with one result per row, in order. */
export function importLinks(deps: ImportRouteDeps, baseUrl: string): RequestHandler {
  return recordFailures(async (req, res) => {
    const read = await readRows(req, res)
    if (read === 'aborted') return
    if ('problem' in read) {
      sendProblem(res, read.problem, baseUrl)
    } else if (deps.isStoreAvailable?.() === false) {
      sendProblem(res, unavailable, baseUrl)
    } else {
      const results = await deps.importBatch(read.rows)
      recordBatch(res, results)
      res.set('Cache-Control', 'no-store').json({ results })
    }
  })
}

/** Records a batch; a batch with a failed row has possibly created more links than are recorded. */
function recordBatch(res: Response, results: readonly ImportResult[]): void {
  const isConfirmed = results.every(({ result }) => result !== 'failed')
  const links = results.filter(({ result }) => result === 'created').length
  recordAction(res, { outcome: isConfirmed ? 'success' : 'store-unavailable', links })
}

/** The rows of the body; a line that is not JSON is `undefined`, an invalid row. */
async function readRows(
  req: Request,
  res: Response,
): Promise<{ rows: readonly unknown[] } | { problem: Problem } | 'aborted'> {
  const { 'content-type': type = '', 'content-encoding': encoding, expect } = req.headers
  const isLines = ndjsonType.test(type)
  if ((!isLines && !jsonType.test(type)) || encoding !== undefined) return { problem: wrongType }
  if (Number(req.headers['content-length'] ?? 0) > BATCH_BYTES_MAX) return { problem: tooLarge }
  if (/100-continue/i.test(expect ?? '')) res.writeContinue()
  const body = await readBytes(req)
  if (body === 'aborted') return body
  if (body === 'too-large') return { problem: tooLarge }
  const rows = parseRows(body, isLines)
  if (rows === undefined) return { problem: malformed }
  return rows.length === 0 || rows.length > BATCH_ROWS_MAX ? { problem: wrongRowCount } : { rows }
}

async function readBytes(req: Request): Promise<Buffer | 'too-large' | 'aborted'> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of req.iterator({ destroyOnReturn: false })) {
      length += (chunk as Buffer).length
      if (length > BATCH_BYTES_MAX) return 'too-large'
      chunks.push(chunk as Buffer)
    }
  } catch {
    return 'aborted' // the client closed the connection
  }
  return Buffer.concat(chunks)
}

function parseRows(body: Buffer, isLines: boolean): readonly unknown[] | undefined {
  try {
    const characters = utf8.decode(body)
    if (isLines) return characters.split('\n').filter(isNotBlank).map(parseLine)
    const rows = JSON.parse(characters) as unknown
    return Array.isArray(rows) ? (rows as unknown[]) : undefined
  } catch {
    return undefined
  }
}

function isNotBlank(line: string): boolean {
  return line.trim() !== ''
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line) as unknown
  } catch {
    return undefined
  }
}
