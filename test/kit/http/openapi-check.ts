// Validates every response of the public HTTP API against the OpenAPI document of the service.
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { type RawResponse, type RawRequest, headerOf, headersOf, jsonOf } from './raw-http.ts'

interface Media {
  readonly schema: { readonly $ref?: string }
}
interface ResponseObject {
  readonly headers?: Readonly<Record<string, { readonly $ref: string }>>
  readonly content?: Readonly<Record<string, Media>>
}
interface OpenApi {
  readonly paths: Readonly<
    Record<
      string,
      Readonly<Record<string, { responses: Readonly<Record<string, ResponseObject>> }>>
    >
  >
  readonly components: { readonly headers: Readonly<Record<string, Media>> }
}

/** Throws if the document does not describe the response. */
export type OpenApiCheck = (request: RawRequest, response: RawResponse) => void

type Validate = (pointer: string, value: unknown) => void
type Responses = Readonly<Record<string, ResponseObject>>

const PROBLEM = 'application/problem+json'

/** Pages and files, which the document does not describe. */
const pagePaths = /^\/((docs|openapi\.json|robots\.txt|favicon\.ico)?|(problems|assets)\/[^/]+)$/

/** The responses of a path that the document does not contain. */
const unknownPath: Responses = {
  default: { content: { [PROBLEM]: { schema: { $ref: '#/components/schemas/Problem' } } } },
}

/** Creates the check from a parsed document. */
export function createOpenApiCheck(document: unknown): OpenApiCheck {
  const api = document as OpenApi
  const validateBody = createValidate(document as object, false)
  const validateHeader = createValidate(document as object, true) // headers are strings
  return (request, response) => {
    checkEvery(response)
    if (isPage(request.path)) return
    const documented = responseOf(api, request, response)
    for (const name of Object.keys(documented.headers ?? {})) {
      for (const value of headersOf(response, name)) {
        validateHeader(`/components/headers/${name}/schema`, value)
      }
    }
    if (response.body.length > 0) checkBody(documented, response, validateBody)
    // The document must allow what the service accepts: clients are generated from it.
    if (response.status === 201 && request.path === '/v1/urls') {
      const sent = Buffer.from(request.body ?? '')
        .toString()
        .replace(/^\ufeff/, '')
      validateBody('/components/schemas/CreateLink', JSON.parse(sent))
    }
  }
}

/** Validates against the schemas of the document, each compiled once. */
function createValidate(document: object, coerceTypes: boolean): Validate {
  const ajv = new Ajv2020({ strict: false, coerceTypes, allErrors: true })
  addFormats.default(ajv)
  ajv.addSchema(document, 'openapi', false, false)
  const compiled = new Map<string, ValidateFunction>()
  return (pointer, value) => {
    const id = `openapi#${pointer}`
    const check = compiled.get(id) ?? ajv.compile({ $ref: id })
    compiled.set(id, check)
    if (check(value)) return
    throw new Error(`${pointer}: ${ajv.errorsText(check.errors)} in ${JSON.stringify(value)}`)
  }
}

/** The documented response of this operation with this status. */
function responseOf(api: OpenApi, request: RawRequest, response: RawResponse): ResponseObject {
  const path = templateOf(api, request.path)
  const item = path === undefined ? undefined : api.paths[path]
  const method = (request.method ?? 'GET').toUpperCase()
  // A HEAD request has the documented responses of GET.
  const operation = item?.[method.toLowerCase()] ?? (method === 'HEAD' ? item?.['get'] : undefined)
  if (item !== undefined && operation === undefined) {
    const isRejected = response.status === 405 && headerOf(response, 'Allow') !== undefined
    if (!isRejected) throw new Error(`${method} ${request.path} returned ${response.status}`)
  }
  const responses: Responses = operation?.responses ?? unknownPath
  const documented = responses[response.status] ?? responses['default']
  if (documented === undefined) throw new Error(`the status ${response.status} is not documented`)
  return documented
}

/** The checks that apply to every response, regardless of the path. */
function checkEvery(response: RawResponse): void {
  const id = headerOf(response, 'X-Request-Id')
  if (id === undefined || !/^[\x21-\x7e]{1,128}$/.test(id)) throw new Error(`X-Request-Id is ${id}`)
  const isRedirect = response.status === 301 || response.status === 302
  if ((isRedirect || response.status === 201) && headerOf(response, 'Location') === undefined) {
    throw new Error(`${response.status} without Location`)
  }
  if (response.status === 503 && headerOf(response, 'Retry-After') === undefined) {
    throw new Error('503 without Retry-After')
  }
  if (response.status !== 304 && headerOf(response, 'Cache-Control') === undefined) {
    throw new Error(`${response.status} without Cache-Control`)
  }
}

function checkBody(documented: ResponseObject, response: RawResponse, validate: Validate): void {
  const type = (headerOf(response, 'Content-Type') ?? '').split(';')[0] ?? ''
  const media = documented.content?.[type]
  // A 404 may be an HTML page; every other response must be in the document.
  if (media === undefined && !(type === 'text/html' && response.status === 404)) {
    throw new Error(`${response.status} of type ${JSON.stringify(type)} is not documented`)
  }
  if (!type.endsWith('json')) return
  const value = jsonOf(response)
  if (media?.schema.$ref !== undefined) validate(media.schema.$ref.slice(1), value)
  if (type !== PROBLEM) return
  if (value['status'] !== response.status)
    throw new Error(`the body has ${String(value['status'])}`)
  if (value['request_id'] !== headerOf(response, 'X-Request-Id')) {
    throw new Error('the body has another request id')
  }
}

/** Whether a target is a page or a file, which the document does not describe. */
function isPage(target: string): boolean {
  return pagePaths.test(pathOf(target))
}

function pathOf(target: string): string {
  const path = target.replace(/^https?:\/\/[^/?#]*\/?/i, '/')
  return path.split(/[?#]/)[0] ?? ''
}

/** The path template of the document that matches a request target; `undefined` if none does. */
function templateOf(api: OpenApi, target: string): string | undefined {
  const path = pathOf(target)
  if (Object.hasOwn(api.paths, path)) return path
  try {
    if (/^\/[0-9A-Za-z_-]{1,10}$/.test(decodeURIComponent(path))) return '/{code}'
    return /^\/[^/]+\.svg$/.test(path) ? '/{code}.svg' : undefined
  } catch {
    return undefined // an escape that cannot be decoded
  }
}
