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

const always = ['X-Request-Id', 'Cache-Control']
const limits = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset']
const example = { long_url: 'https://example.com/a/long/path?with=a#fragment', ttl_days: 30 }

/** All paths. */
export function openApiPaths(baseUrl: string): Record<string, PathItem> {
  return {
    '/v1/urls': { post: createLink(baseUrl) },
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
    'Allows safe retries for 24 hours: the same key with the same body returns ' +
    'the same link. With another body it is rejected. Choose a key that no other client uses.',
  schema: { type: 'string', pattern: '^[\\x21-\\x7e]{1,255}$' },
  example: '5f0c6a52-0a53-4c5c-9a5e-3f1f6f0e8d11',
}

/** The security schemes. */
export const securitySchemes: Readonly<Record<'ApiKey', SecurityScheme>> = {
  ApiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-API-Key',
    description: 'An API key, which the operator of the service issues.',
  },
}

const codeParameter: Parameter = {
  name: 'code',
  in: 'path',
  required: true,
  description: 'The code or alias. Case-sensitive.',
  schema: { type: 'string', pattern: '^[0-9A-Za-z_-]{1,10}$' },
  example: 'spring-26',
}

function createLink(baseUrl: string): Operation {
  const created = { short_url: `${baseUrl}/7bQ2xK9`, expires_at: '2026-12-24T18:00:00.000Z' }
  return {
    operationId: 'createLink',
    summary: 'Create a short link',
    description:
      'Stores the link durably and returns 201. A 4xx response means that nothing was stored. ' +
      'The body has at most 16 KiB.\n\nA client can have an API key, which it sends in the ' +
      'header `X-API-Key`: the link then belongs to the creator of the key, and an ' +
      'Idempotency-Key only has to be unique among the requests of that creator. An unknown or ' +
      'expired key counts as none. A service may require a key.',
    parameters: [idempotencyKey],
    security: [{}, { ApiKey: [] }],
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
      ...problems(400, 401, 409, 413, 415, 422, 429, 500, 503),
      default: otherProblem,
    },
  }
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
      'The query of the short link is ignored. Unknown, expired, disabled and deleted links ' +
      'all get the same response; and links with a blocked target, too, unless the service ' +
      'returns 410 or 451 for them.',
    parameters: [codeParameter],
    responses: {
      301: redirect(
        'Redirects to Location if the deployment uses 301. Cacheable for at most 300 seconds.',
      ),
      302: redirect('Redirects to Location, the target exactly as stored. Not cacheable.'),
      ...withoutBodyIf(isHead, {
        404: notFound,
        ...blockedLink(),
        ...problems(429, 500, 503),
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
      'An image for print and screens. It depends only on the code: links that do not exist or ' +
      'have expired have one as well.',
    parameters: [codeParameter],
    responses: {
      200: {
        description: 'The QR code of the complete short link.',
        headers: headers(...always, 'ETag', ...limits),
        content: { 'image/svg+xml': plainText },
      },
      304: {
        description: 'The image with the ETag in If-None-Match is current.',
        headers: headers(...always, 'ETag', ...limits),
      },
      404: {
        description:
          '`not-found`: a reserved word, or no code. A page if Accept prefers text/html.',
        headers: headers(...always),
        content: { ...problemContent, ...htmlPage },
      },
      ...problems(429),
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

const notFound: ResponseObject = {
  description: '`not-found`: no link has this code. A page if Accept prefers text/html.',
  headers: headers(...always, ...limits),
  content: { ...problemContent, ...htmlPage },
}

/** The statuses that a service can return for links with a blocked target, instead of 404. */
function blockedLink(): Responses {
  return Object.fromEntries(
    Object.entries(problems(410, 451)).map(([status, response]): [string, ResponseObject] => {
      const description = `${response.description} A page if Accept prefers text/html.`
      return [status, { ...response, description, content: { ...problemContent, ...htmlPage } }]
    }),
  )
}

const otherProblem: ResponseObject = {
  description: 'Any other problem, such as 405 `method-not-allowed` with Allow.',
  headers: headers(...always, 'Allow'),
  content: problemContent,
}

/** Problems that no operation of the document returns: not HTTP, or of the admin API. */
const isOutsideApi: ReadonlySet<string> = new Set<ProblemName>(['bad-request', 'unauthorized'])

function problems(...statuses: readonly number[]): Responses {
  return Object.fromEntries(
    statuses.map((status): [string, ResponseObject] => {
      const titles = Object.entries(problemTypes)
        .filter(([name, type]) => type.status === status && !isOutsideApi.has(name))
        .map(
          ([name, { title }]) => `\`${name}\`: ${title.charAt(0).toLowerCase()}${title.slice(1)}`,
        )
      const retryAfter = status === 429 || status === 503 ? ['Retry-After'] : []
      const description = `${titles.join('; ')}.`
      const names = [...always, ...retryAfter, ...limits]
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
