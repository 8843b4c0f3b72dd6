// The paths of the OpenAPI document: the API's operations with their responses.
import { type ProblemName, problemTypes } from '../problem.ts'
import type {
  Content,
  MediaType,
  Operation,
  Parameter,
  PathItem,
  Reference,
  ResponseObject,
  SecurityScheme,
} from './openapi-document.ts'

type Responses = Record<string, ResponseObject>

/** Headers of every response. */
const always = ['X-Request-Id', 'Cache-Control']
/** Headers of a response if a rate limit counted the request and the limiter was available. */
const limits = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset']
/** Headers that are the same for all operations. */
export const sharedHeaders: readonly string[] = [...always, ...limits]

const example = { long_url: 'https://example.com/a/long/path?with=a#fragment', ttl_days: 30 }

/** What the paths depend on. */
interface PathsOptions {
  readonly baseUrl: string
  /** Whether a create requires an API key. */
  readonly isKeyRequired: boolean
}

/** All paths. */
export function openApiPaths(options: PathsOptions): Record<string, PathItem> {
  return {
    '/v1/urls': { post: createLink(options) },
    '/{code}': {
      get: redirectOperation('resolveLink', 'Resolve a short link'),
      head: redirectOperation('probeLink', 'Resolve a short link without a body'),
    },
    '/{code}.svg': { get: qrOperation() },
  }
}

const plainText: MediaType = { schema: { type: 'string' } }
const htmlPage: Content = { 'text/html': plainText }

const idempotencyKey: Parameter = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'A retry is safe for 24 hours: the same key with the same body returns the same link, ' +
    'and the same key with another body is rejected. Choose a random key: it must be unique ' +
    'among the requests of one creator, or among those of all clients without an API key.',
  schema: { type: 'string', pattern: '^[\\x21-\\x7e]{1,255}$' },
  example: '5f0c6a52-0a53-4c5c-9a5e-3f1f6f0e8d11',
}

/** The security schemes. */
export const securitySchemes: Readonly<Record<'ApiKey', SecurityScheme>> = {
  ApiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-API-Key',
    description: 'An API key. The operator of this service issues it.',
  },
}

const codeParameter: Parameter = {
  name: 'code',
  in: 'path',
  required: true,
  description: 'The code or alias. Case-sensitive.',
  // The attribute `pattern` of HTML requires the backslash.
  schema: { type: 'string', pattern: '^[0-9A-Za-z_\\-]{1,10}$' },
  example: 'spring-26',
}

function createLink({ baseUrl, isKeyRequired }: PathsOptions): Operation {
  const created = { short_url: `${baseUrl}/7bQ2xK9`, expires_at: '2026-12-24T18:00:00.000Z' }
  return {
    operationId: 'createLink',
    summary: 'Create a short link',
    description:
      'Stores the link durably before it returns 201. After a 4xx response, nothing was stored. ' +
      `The body has at most 16 KiB.\n\n${keyDescription(isKeyRequired)}`,
    parameters: [idempotencyKey],
    security: isKeyRequired ? [{ ApiKey: [] }] : [{}, { ApiKey: [] }],
    requestBody: {
      required: true,
      content: {
        'application/json': { schema: { $ref: '#/components/schemas/CreateLink' }, example },
      },
    },
    responses: {
      201: {
        description: 'The link was created.',
        headers: headers(...always, 'Location', 'Idempotency-Replayed', ...limits),
        content: {
          'application/json': {
            schema: { $ref: '#/components/schemas/CreatedLink' },
            example: created,
          },
        },
      },
      ...problems([400, ...(isKeyRequired ? [401] : []), 409, 413, 415, 422, 429, 500, 503]),
      default: otherProblem,
    },
  }
}

function keyDescription(isRequired: boolean): string {
  const use = 'The link belongs to the creator of the key.'
  return isRequired
    ? `This service requires an API key in the header \`X-API-Key\`. ${use}`
    : 'An API key in the header `X-API-Key` is optional. Without a valid key the link has no ' +
        `creator. ${use}`
}

function redirectOperation(operationId: string, summary: string): Operation {
  const isHead = operationId === 'probeLink'
  const redirect = (description: string): ResponseObject => ({
    description,
    headers: headers(...always, 'Location', 'X-Robots-Tag', 'Referrer-Policy', ...limits),
    ...(!isHead && { content: { 'text/plain': plainText } }),
  })
  return {
    operationId,
    summary,
    description:
      'Ignores the query of the short link. An unknown, expired, disabled or deleted link ' +
      'returns 404, which does not reveal the cause. A link with a blocked target returns 404, ' +
      'or 410 or 451 if the operator has configured that status.',
    parameters: [codeParameter],
    responses: {
      301: redirect(
        'Redirects to the target in `Location`, if the operator has configured 301 instead of ' +
          '302. A client may cache it for at most 300 seconds.',
      ),
      302: redirect('Redirects to the target in `Location`. A client must not cache it.'),
      ...withoutBodyIf(isHead, {
        404: notFound,
        ...blockedLink(),
        ...problems([429, 500, 503], createOnly),
        default: otherProblem,
      }),
    },
  }
}

function qrOperation(): Operation {
  return {
    operationId: 'getQrCode',
    summary: 'Get the QR code of a short link',
    description:
      'Returns an SVG image for print and screens. It depends only on the code, so a code ' +
      'without a link also has an image.',
    parameters: [codeParameter],
    responses: {
      200: {
        description: 'The QR code of the complete short link.',
        headers: headers(...always, 'ETag', ...limits),
        content: { 'image/svg+xml': plainText },
      },
      304: {
        description: 'The image that the client has, with the ETag in If-None-Match, is current.',
        headers: headers(...always, 'ETag', ...limits),
      },
      404: {
        description: `\`not-found\`: the path is a reserved word or not a code. ${orPage}`,
        headers: headers(...always),
        content: { ...problemContent, ...htmlPage },
      },
      ...problems([429]),
      default: otherProblem,
    },
  }
}

function headers(...names: readonly string[]): Record<string, Reference> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

const problemContent: Content = {
  'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } },
}

const orPage = 'The body is a page if Accept prefers text/html.'

const notFound: ResponseObject = {
  description: `\`not-found\`: no link has this code. ${orPage}`,
  headers: headers(...always, ...limits),
  content: { ...problemContent, ...htmlPage },
}

/** The statuses that a service can return for links with a blocked target, instead of 404. */
function blockedLink(): Responses {
  return Object.fromEntries(
    Object.entries(problems([410, 451])).map(([status, response]): [string, ResponseObject] => {
      const description = `${response.description} ${orPage}`
      return [status, { ...response, description, content: { ...problemContent, ...htmlPage } }]
    }),
  )
}

const otherProblem: ResponseObject = {
  description: 'Any other problem, such as 405 `method-not-allowed` with `Allow`.',
  headers: headers(...always, 'Allow'),
  content: problemContent,
}

/** Problems with a documented status that only the admin API returns. */
const adminOnly: ReadonlySet<string> = new Set<ProblemName>(['unauthorized'])

/** Problems with a status of redirects that only a create returns. */
const createOnly: ReadonlySet<string> = new Set<ProblemName>(['pool-empty'])

/** Headers of problems by their status. */
const ownHeaders: Readonly<Record<number, readonly string[]>> = {
  401: ['WWW-Authenticate'],
  429: ['Retry-After'],
  503: ['Retry-After'],
}

/** The problem responses with these statuses, without the types in `except`. */
function problems(statuses: readonly number[], except: ReadonlySet<string> = new Set()): Responses {
  return Object.fromEntries(
    statuses.map((status): [string, ResponseObject] => {
      const titles = Object.entries(problemTypes)
        .filter(([, type]) => type.status === status)
        .filter(([name]) => !adminOnly.has(name) && !except.has(name))
        .map(
          ([name, { title }]) => `\`${name}\`: ${title.charAt(0).toLowerCase()}${title.slice(1)}`,
        )
      const own = ownHeaders[status] ?? []
      const description = `${titles.join('; ')}.`
      const names = [...always, ...own, ...limits]
      return [String(status), { description, headers: headers(...names), content: problemContent }]
    }),
  )
}

/** A HEAD response has headers only. */
function withoutBodyIf(isHead: boolean, responses: Responses): Responses {
  if (!isHead) return responses
  return Object.fromEntries(
    Object.entries(responses).map(([status, { description, headers: named }]) => {
      return [status, { description, ...(named && { headers: named }) }]
    }),
  )
}
