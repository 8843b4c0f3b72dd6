// Problem documents (RFC 9457), from one table of types: the error responses for programs. A
// document never contains a stack trace, a driver's message or a host name.
import type { ServerResponse } from 'node:http'
import { requestIdOf } from '../telemetry/request-id.ts'

/** One problem type, as `/problems/{name}` explains it. */
export interface ProblemType {
  readonly status: number
  readonly title: string
  /** What it means and what to do, for people. */
  readonly meaning: string
}

const retryIsUseless = 'A retry of the unchanged request gets the same response.'

/** The table; names and statuses are the contract. openapi.ts and `/problems/{name}` read it. */
export const problemTypes = {
  'malformed-json': {
    status: 400,
    title: 'The body is not JSON',
    meaning: `The body could not be read as JSON in UTF-8. ${retryIsUseless}`,
  },
  'bad-request': {
    status: 400,
    title: 'The request is not HTTP',
    meaning: `The request is not valid HTTP: the detail has the cause. ${retryIsUseless}`,
  },
  unauthorized: {
    status: 401,
    title: 'The admin API requires its token',
    meaning:
      'Send the token of ADMIN_TOKEN as Authorization: Bearer. Only the admin port returns this.',
  },
  'api-key-required': {
    status: 401,
    title: 'A create requires an API key',
    meaning:
      'Nothing was stored. Send a valid API key of this service in the header X-API-Key. ' +
      'Keys can expire and be revoked.',
  },
  forbidden: {
    status: 403,
    title: 'The admin API is not for web pages',
    meaning:
      'Without ADMIN_TOKEN the admin API serves programs on its machine, not pages in a browser.',
  },
  'not-found': {
    status: 404,
    title: 'There is nothing here',
    meaning:
      'Nothing is at this path: no link has this code, or the link has expired, was disabled or ' +
      'deleted, or its target is blocked. The response does not reveal which.',
  },
  'method-not-allowed': {
    status: 405,
    title: 'This method is not allowed here',
    meaning: 'The path is served, but not by this method. The Allow header lists those that work.',
  },
  'request-timeout': {
    status: 408,
    title: 'The request took too long',
    meaning: 'The whole request must arrive within seconds. Retry it without pauses.',
  },
  'alias-taken': {
    status: 409,
    title: 'The alias is taken',
    meaning: 'Another link has this alias. Nothing was stored. Choose another one, or omit it.',
  },
  'link-blocked': {
    status: 410,
    title: 'The target of the link is blocked',
    meaning:
      'The operator of this service blocks the target of this link. The link itself is unchanged.',
  },
  'body-too-large': {
    status: 413,
    title: 'The body is too large',
    meaning: `A body may have at most 16 KiB, a batch of an import 2 MiB. ${retryIsUseless}`,
  },
  'unsupported-media-type': {
    status: 415,
    title: 'The body is of another type',
    meaning:
      'The path does not accept this Content-Type, or the body has a content encoding. The ' +
      `detail has what is allowed. ${retryIsUseless}`,
  },
  'invalid-request': {
    status: 422,
    title: 'A field violates its rule',
    meaning:
      'The list of errors has the field, as a JSON pointer into the body, and what is allowed.',
  },
  'idempotency-key-reused': {
    status: 422,
    title: 'The Idempotency-Key was used with another body',
    meaning: 'A key belongs to its first valid body for 24 hours. Use a new key for a new request.',
  },
  'target-blocked': {
    status: 422,
    title: 'The target is blocked',
    meaning: `The operator of this service blocks the host or the URL. ${retryIsUseless}`,
  },
  'rate-limited': {
    status: 429,
    title: 'Too many requests',
    meaning:
      'A limit is used up; the member rule names it. Retry after Retry-After seconds. ' +
      'The X-RateLimit headers of responses report what remains.',
  },
  'headers-too-large': {
    status: 431,
    title: 'The headers are too large',
    meaning: `The request line and headers may have at most 16 KiB together. ${retryIsUseless}`,
  },
  'unavailable-for-legal-reasons': {
    status: 451,
    title: 'The target of the link is blocked for legal reasons',
    meaning:
      'The operator of this service blocks the target of this link, as required by law. The link ' +
      'itself is unchanged.',
  },
  internal: {
    status: 500,
    title: 'Internal error',
    meaning: 'The service failed unexpectedly. The error was logged with the request id.',
  },
  'pool-empty': {
    status: 503,
    title: 'No generated code is left',
    meaning: 'Codes are being generated. Retry after Retry-After; custom aliases still work.',
  },
  'store-unavailable': {
    status: 503,
    title: 'The store is unavailable',
    meaning:
      'The store is unavailable, or the outcome is unknown. Retry after Retry-After; ' +
      'with the same Idempotency-Key this creates no second link.',
  },
  unavailable: {
    status: 503,
    title: 'The service is unavailable',
    meaning: 'No service behind the edge responded within the timeout. Retry after Retry-After.',
  },
} as const satisfies Readonly<Record<string, ProblemType>>

/** Name of a problem type: the last segment of its `type`. */
export type ProblemName = keyof typeof problemTypes

/** One violated rule of `invalid-request`. */
export interface FieldFault {
  /** JSON pointer into the body; empty = the body itself, a header or the query. */
  readonly pointer: string
  /** A stable identifier that programs may compare. */
  readonly code: string
  /** What is allowed: a sentence without its subject, the field; complete if `pointer` is empty. */
  readonly detail: string
}

/** The content of an error response. */
export interface Problem {
  readonly name: ProblemName
  readonly detail: string
  readonly errors?: readonly FieldFault[]
  /** Further members, such as `rule`. */
  readonly members?: Readonly<Record<string, string>>
  /** Further headers, such as Allow. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Media type of problem documents. */
export const PROBLEM_TYPE = 'application/problem+json'

/** `Retry-After` of a 503. */
const RETRY_AFTER_SECONDS = 1

/** The problem document as a JSON string. */
export function renderProblem(
  problem: Problem,
  about: { baseUrl: string; requestId?: string },
): string {
  const { status, title } = problemTypes[problem.name]
  return JSON.stringify({
    type: `${about.baseUrl}/problems/${problem.name}`,
    title,
    status,
    detail: problem.detail,
    ...(about.requestId !== undefined && { request_id: about.requestId }),
    ...(problem.errors !== undefined && { errors: problem.errors }),
    ...problem.members,
  })
}

/** Headers of a problem response, except its length and request id. */
export function problemHeaders(problem: Problem): Record<string, string> {
  return {
    'Content-Type': PROBLEM_TYPE,
    'Cache-Control': 'no-store',
    ...(problemTypes[problem.name].status === 503 && {
      'Retry-After': String(RETRY_AFTER_SECONDS),
    }),
    ...problem.headers,
  }
}

/** Responds with a problem document, which contains the id of the request. */
export function sendProblem(res: ServerResponse, problem: Problem, baseUrl: string): void {
  const body = renderProblem(problem, { baseUrl, requestId: requestIdOf(res.req) })
  res.writeHead(problemTypes[problem.name].status, {
    ...problemHeaders(problem),
    'Content-Length': Buffer.byteLength(body),
  })
  res.end(body)
}
