// The OpenAPI document, built from the schema that validates requests, the table of problem types,
// and the response schemas below, which tests verify against real responses.
import * as z from 'zod'
import { version } from '../../process/version.ts'
import { type ProblemName, problemTypes } from '../problem.ts'
import type { HeaderObject, JsonSchema } from './openapi-document.ts'
import { openApiPaths, securitySchemes } from './openapi-paths.ts'
import type { CreateRouteDeps } from './post-link.ts'

const instant = z
  .string()
  .regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  .meta({ format: 'date-time', examples: ['2026-12-24T18:00:00.000Z'] })

/** The body of a 201. */
export const createdLinkSchema = z
  .strictObject({
    short_url: z.url().meta({ description: 'The complete short link.' }),
    expires_at: instant.nullable().meta({
      description: 'When the link expires, in UTC with milliseconds. null if it never expires.',
    }),
  })
  .meta({ id: 'CreatedLink', description: 'A link that was created.' })

const faultSchema = z.strictObject({
  pointer: z.string().meta({
    description: 'The JSON pointer to the member of the body. Empty: the whole body, or a header.',
    examples: ['/ttl_days'],
  }),
  code: z.string().meta({
    description: 'The violated rule, for programs. It never changes.',
    examples: ['out-of-range'],
  }),
  detail: z.string().meta({ description: 'The violated rule, for people.' }),
})

/** Every problem document. */
export const problemSchema = z
  .strictObject({
    type: z.url().meta({ description: 'The URL of the page that explains this type of problem.' }),
    title: z
      .string()
      .meta({ description: 'The type, for people. It is the same for every problem of the type.' }),
    status: z.int().min(400).max(599).meta({ description: 'The HTTP status of the response.' }),
    detail: z.string().meta({ description: 'The cause of this problem, for people.' }),
    request_id: z.string().min(1).meta({ description: 'The same as the header X-Request-Id.' }),
    errors: z
      .array(faultSchema)
      .min(1)
      .optional()
      .meta({ description: 'Only with `invalid-request`: each violated rule.' }),
    rule: z
      .string()
      .optional()
      .meta({ description: 'Only with `rate-limited`: the rule that denied the request.' }),
  })
  .meta({ id: 'Problem', description: 'A problem document (RFC 9457).' })

const count = (description: string) => z.coerce.number().int().min(0).meta({ description })

/** Response headers, as strings. */
const headerSchemas = {
  'X-Request-Id': z
    .string()
    .regex(/^[\x21-\x7e]{1,128}$/)
    .meta({
      description:
        'Identifies the request in the logs. The service generates it, or takes it from the ' +
        'proxy in front of it.',
    }),
  // Not `format: uri`: a target is returned as it was sent, and that grammar rejects some targets.
  Location: z
    .string()
    .regex(/^[Hh][Tt][Tt][Pp][Ss]?:\/\/[\x21-\x7e]+$/)
    .meta({ description: 'The target of the redirect, or the created link.' }),
  'Cache-Control': z
    .string()
    .min(1)
    .meta({ description: 'How long the client may cache the response.' }),
  'Retry-After': z.coerce
    .number()
    .int()
    .min(1)
    .meta({ description: 'How many seconds to wait before a retry.' }),
  'Idempotency-Replayed': z.literal('true').meta({
    description: 'Present if an earlier request with the same Idempotency-Key created the link.',
  }),
  'X-Robots-Tag': z
    .literal('noindex')
    .meta({ description: 'Search engines must not index short links.' }),
  'Referrer-Policy': z.literal('no-referrer-when-downgrade').meta({
    description: 'The browser may send the target the URL of the page that contains the link.',
  }),
  'X-RateLimit-Limit': count(
    'The rate limit: of all rules that counted the request, the one with the fewest requests ' +
      'remaining.',
  ),
  'X-RateLimit-Remaining': count('How many requests remain of this limit.'),
  'X-RateLimit-Reset': count('When all of this limit is available again, in Unix seconds.'),
  ETag: z
    .string()
    .regex(/^"[\x21\x23-\x7e]+"$/)
    .meta({ description: 'Identifies the content of the image.' }),
  'WWW-Authenticate': z
    .literal('ApiKey')
    .meta({ description: 'The service requires the header X-API-Key.' }),
  Allow: z.string().min(1).meta({ description: 'The methods that the path serves.' }),
} as const

/** Headers of a redirect, by lower-case name. */
export const redirectHeadersSchema = z.looseObject({
  location: headerSchemas.Location,
  'cache-control': z.string().regex(/^private, (no-store|max-age=\d{1,3})$/),
  'content-type': z.literal('text/plain; charset=utf-8'),
  'x-robots-tag': headerSchemas['X-Robots-Tag'],
  'referrer-policy': headerSchemas['Referrer-Policy'],
  'x-request-id': headerSchemas['X-Request-Id'],
})

/** Headers of a 201 of the API, by lower-case name. */
export const createdHeadersSchema = z.looseObject({
  location: headerSchemas.Location,
  'cache-control': z.literal('no-store'),
  'content-type': z.literal('application/json; charset=utf-8'),
  'x-request-id': headerSchemas['X-Request-Id'],
  'idempotency-replayed': headerSchemas['Idempotency-Replayed'].optional(),
})

const apiDescription = [
  'Curtail creates short links. A short link never changes its target, and a code is never issued',
  'twice.\n\nAn error is a problem document (RFC 9457) of the type `application/problem+json`.',
  'Its `type` is the URL of a page that explains the problem, and its `request_id` identifies the',
  'request in the logs. A path that does not serve the method returns 405 with `Allow`.',
].join(' ')

/** What the document depends on. */
interface OpenApiDeps extends Pick<CreateRouteDeps, 'baseUrl' | 'schema'> {
  readonly keys: Pick<CreateRouteDeps['keys'], 'isRequired'>
}

/** Creates the document of the service at `baseUrl`. */
export function createOpenApi({ baseUrl, schema, keys }: OpenApiDeps) {
  const schemas: Readonly<Record<string, JsonSchema>> = {
    CreateLink: toJsonSchema(schema, 'input'),
    CreatedLink: toJsonSchema(createdLinkSchema, 'output'),
    Problem: withProblemTypes(toJsonSchema(problemSchema, 'output'), baseUrl),
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Curtail',
      version,
      description: apiDescription,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: baseUrl }],
    paths: openApiPaths({ baseUrl, isKeyRequired: keys.isRequired }),
    components: {
      schemas,
      headers: Object.fromEntries(Object.entries(headerSchemas).map(toHeader)),
      securitySchemes,
    },
  }
}

/** The document. */
export type OpenApiDocument = ReturnType<typeof createOpenApi>

function toHeader([name, schema]: [string, z.ZodType]): [string, HeaderObject] {
  const { description, ...rest } = toJsonSchema(schema, 'output')
  return [name, { description: String(description), schema: rest }]
}

/** The schema itself, without the envelope that zod adds to a schema with an id. */
function toJsonSchema(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
  const { $ref, $defs, ...inline } = z.toJSONSchema(schema, { io })
  const id = $ref?.split('/').at(-1) ?? ''
  const named = $defs?.[id] ?? inline
  return Object.fromEntries(Object.entries(named).filter(([keyword]) => keyword !== '$schema'))
}

/** Adds the current types as examples: clients must expect new ones. */
function withProblemTypes(problem: JsonSchema, baseUrl: string): JsonSchema {
  const names = Object.keys(problemTypes) as ProblemName[]
  const properties = problem['properties'] as Record<string, JsonSchema>
  const type = {
    ...properties['type'],
    examples: names.map((name) => `${baseUrl}/problems/${name}`),
  }
  return { ...problem, properties: { ...properties, type } }
}
