// The paths of the OpenAPI document: every public path with its methods and responses.
import { problemTypes } from '../problem.ts'
import type {
  Content,
  MediaType,
  Operation,
  Parameter,
  PathItem,
  Reference,
  ResponseObject,
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
      get: redirectOperation('followLink', 'Follow a short link'),
      head: redirectOperation('probeLink', 'See where a short link leads'),
    },
    '/': { get: page('getHome', 'The page to shorten a link'), post: submitForm() },
    '/docs': { get: page('getDocs', 'This API reference') },
    '/problems/{name}': { get: explainProblem() },
    '/openapi.json': {
      get: document('getOpenApi', 'This document', {
        'application/json': { schema: { type: 'object' } },
      }),
    },
    '/assets/{name}': { get: getAsset() },
    '/robots.txt': {
      get: file('getRobots', 'What crawlers may visit', { 'text/plain': plainText }),
    },
    '/favicon.ico': { get: file('getFavicon', 'The icon', { 'image/x-icon': { schema: {} } }) },
  }
}

const plainText: MediaType = { schema: { type: 'string' } }
const htmlPage: Content = { 'text/html': plainText }

const idempotencyKey: Parameter = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'Makes a request safe to retry for 24 hours: the same key with the same body returns ' +
    'the same link. With another body it is rejected. Choose a key that no other client uses.',
  schema: { type: 'string', pattern: '^[\\x21-\\x7e]{1,255}$' },
  example: '5f0c6a52-0a53-4c5c-9a5e-3f1f6f0e8d11',
}

function createLink(baseUrl: string): Operation {
  const created = { short_url: `${baseUrl}/7bQ2xK9`, expires_at: '2026-12-24T18:00:00.000Z' }
  return {
    operationId: 'createLink',
    summary: 'Make a short link',
    description:
      'Stores the link durably and returns 201. A 4xx response means that nothing was stored. ' +
      'The body has at most 16 KiB.',
    tags: ['Links'],
    parameters: [idempotencyKey],
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
      ...problems(400, 409, 413, 415, 422, 429, 500, 503),
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
      'all get the same response.',
    tags: ['Links'],
    parameters: [
      {
        name: 'code',
        in: 'path',
        required: true,
        description: 'The code or alias. Case counts.',
        schema: { type: 'string', pattern: '^[0-9A-Za-z_-]{1,10}$' },
        example: 'spring-26',
      },
    ],
    responses: {
      301: redirect(
        'Follow Location. If the deployment returns 301; cacheable for at most 300 seconds.',
      ),
      302: redirect('Follow Location, which is the target exactly as stored. Not cacheable.'),
      ...withoutBodyIf(isHead, {
        404: notFound,
        ...problems(429, 500, 503),
        default: otherProblem,
      }),
    },
  }
}

function submitForm(): Operation {
  const properties = {
    long_url: { type: 'string', description: 'As in the API.' },
    custom_alias: { type: 'string', description: 'As in the API; empty means absent.' },
    ttl_days: { type: 'string', description: 'As in the API; empty means absent.' },
  }
  const schema = { type: 'object', properties, required: ['long_url'], additionalProperties: false }
  const pageResponse = (description: string): ResponseObject => ({
    description,
    headers: headers(...always, ...limits),
    content: htmlPage,
  })
  const retryLater = (description: string): ResponseObject => ({
    ...pageResponse(description),
    headers: headers(...always, 'Retry-After', ...limits),
  })
  return {
    operationId: 'submitForm',
    summary: 'Make a short link by the form of the page',
    description: 'For browsers without JavaScript. The rules and limits are those of the API.',
    tags: ['Pages'],
    requestBody: {
      required: true,
      content: {
        'application/x-www-form-urlencoded': { schema, example: { long_url: example.long_url } },
      },
    },
    responses: {
      201: {
        ...pageResponse('The page with the short link.'),
        headers: headers(...always, 'Location', ...limits),
      },
      409: pageResponse('The page, with the problem beside the alias.'),
      413: pageResponse('The page: the form has more than 16 KiB.'),
      422: pageResponse('The page, with each problem beside its field.'),
      429: retryLater('The page: too many links were created; retry after Retry-After.'),
      503: retryLater('The page: retry later.'),
      ...problems(415, 500),
      default: otherProblem,
    },
  }
}

function explainProblem(): Operation {
  const name: Parameter = {
    name: 'name',
    in: 'path',
    required: true,
    description: 'The last part of the type of a problem document.',
    schema: { type: 'string' },
    example: 'alias-taken',
  }
  const { responses, ...rest } = page('getProblem', 'What a type of problem means')
  return { ...rest, parameters: [name], responses: { ...responses, 404: notFound } }
}

function getAsset(): Operation {
  const name: Parameter = {
    name: 'name',
    in: 'path',
    required: true,
    description: 'The name of the file.',
    schema: { type: 'string' },
    example: 'page.css',
  }
  const content = { 'text/css': plainText, 'text/javascript': plainText }
  const { responses, ...rest } = file('getAsset', 'A style sheet or script of the pages', content)
  return {
    ...rest,
    tags: ['Pages'],
    parameters: [name],
    responses: { ...responses, 404: notFound },
  }
}

function page(operationId: string, summary: string): Operation {
  return { ...document(operationId, summary, htmlPage), tags: ['Pages'] }
}

function document(operationId: string, summary: string, content: Content): Operation {
  return {
    operationId,
    summary,
    description: `${summary}. HEAD works too.`,
    tags: ['Documents'],
    responses: {
      200: { description: `${summary}.`, headers: headers(...always), content },
      default: otherProblem,
    },
  }
}

/** A document that a client may cache and revalidate with `If-None-Match`. */
function file(operationId: string, summary: string, content: Content): Operation {
  const { responses, ...rest } = document(operationId, summary, content)
  const notModified = {
    description: 'It is the one of If-None-Match.',
    headers: headers(...always),
  }
  return { ...rest, responses: { ...responses, 304: notModified } }
}

function headers(...names: readonly string[]): Record<string, Reference> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

const problemContent: Content = {
  'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } },
}

const notFound: ResponseObject = {
  description: '`not-found`: there is nothing here. A page where Accept prefers text/html.',
  headers: headers(...always, ...limits),
  content: { ...problemContent, ...htmlPage },
}

const otherProblem: ResponseObject = {
  description: 'Any other problem, such as 405 `method-not-allowed` with Allow.',
  headers: headers(...always, 'Allow'),
  content: problemContent,
}

function problems(...statuses: readonly number[]): Responses {
  return Object.fromEntries(
    statuses.map((status): [string, ResponseObject] => {
      const titles = Object.entries(problemTypes)
        .filter(([name, type]) => type.status === status && name !== 'bad-request')
        .map(([name, type]) => `\`${name}\`: ${type.title.toLowerCase()}`)
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
