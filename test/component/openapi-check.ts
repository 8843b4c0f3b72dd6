// Holds every answer of the public HTTP against the OpenAPI document that the service itself
// serves.
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { type Answer, type Ask, headerOf, headersOf, jsonOf } from './raw-http.ts'

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

/** Throws where the answer is not one that the document tells of. */
export type OpenApiCheck = (ask: Ask, answer: Answer) => void

type Validate = (pointer: string, value: unknown) => void
type Responses = Readonly<Record<string, ResponseObject>>

const PROBLEM = 'application/problem+json'

/** Pages and files, which are not part of the API that the document describes. */
const pagePaths = /^\/((docs|openapi\.json|robots\.txt|favicon\.ico)?|(problems|assets)\/[^/]+)$/

/** What every path that the document does not tell of may answer. */
const unknownPath: Responses = {
  default: { content: { [PROBLEM]: { schema: { $ref: '#/components/schemas/Problem' } } } },
}

/** Makes the check of a parsed document. */
export function createOpenApiCheck(document: unknown): OpenApiCheck {
  const api = document as OpenApi
  const validateBody = createValidate(document as object, false)
  const validateHeader = createValidate(document as object, true) // headers come as text
  return (ask, answer) => {
    checkAlways(answer)
    if (isPage(ask.path)) return
    const response = responseOf(api, ask, answer)
    for (const name of Object.keys(response.headers ?? {})) {
      for (const value of headersOf(answer, name)) {
        validateHeader(`/components/headers/${name}/schema`, value)
      }
    }
    if (answer.body.length > 0) checkBody(response, answer, validateBody)
    // What the service takes, the document must allow: clients are generated from it.
    if (answer.status === 201 && ask.path === '/v1/urls') {
      const sent = Buffer.from(ask.body ?? '')
        .toString()
        .replace(/^\ufeff/, '')
      validateBody('/components/schemas/CreateLink', JSON.parse(sent))
    }
  }
}

/** Validates by the schemas of the document, each compiled once. */
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

/** What the document says of this status of this operation. */
function responseOf(api: OpenApi, ask: Ask, answer: Answer): ResponseObject {
  const path = templateOf(api, ask.path)
  const item = path === undefined ? undefined : api.paths[path]
  const method = (ask.method ?? 'GET').toLowerCase()
  const operation = item?.[method] ?? (method === 'head' ? item?.['get'] : undefined)
  if (item !== undefined && operation === undefined) {
    const isRefused = answer.status === 405 && headerOf(answer, 'Allow') !== undefined
    if (!isRefused) throw new Error(`${method} ${ask.path} was answered ${answer.status}`)
  }
  const responses: Responses = operation?.responses ?? unknownPath
  const response = responses[answer.status] ?? responses['default']
  if (response === undefined) throw new Error(`no answer ${answer.status} is documented`)
  return response
}

/** What holds for every answer, whatever the path. */
function checkAlways(answer: Answer): void {
  const id = headerOf(answer, 'X-Request-Id')
  if (id === undefined || !/^[\x21-\x7e]{1,128}$/.test(id)) throw new Error(`X-Request-Id is ${id}`)
  const isRedirect = answer.status === 301 || answer.status === 302
  if ((isRedirect || answer.status === 201) && headerOf(answer, 'Location') === undefined) {
    throw new Error(`${answer.status} without Location`)
  }
  if (answer.status === 503 && headerOf(answer, 'Retry-After') === undefined) {
    throw new Error('503 without Retry-After')
  }
  if (answer.status !== 304 && headerOf(answer, 'Cache-Control') === undefined) {
    throw new Error(`${answer.status} without Cache-Control`)
  }
}

function checkBody(response: ResponseObject, answer: Answer, validate: Validate): void {
  const type = (headerOf(answer, 'Content-Type') ?? '').split(';')[0] ?? ''
  const media = response.content?.[type]
  // A browser may get a page where there is nothing; all else must be in the document.
  if (media === undefined && !(type === 'text/html' && answer.status === 404)) {
    throw new Error(`an answer ${answer.status} of type ${JSON.stringify(type)} is not documented`)
  }
  if (!type.endsWith('json')) return
  const value = jsonOf(answer)
  if (media?.schema.$ref !== undefined) validate(media.schema.$ref.slice(1), value)
  if (type !== PROBLEM) return
  if (value['status'] !== answer.status) throw new Error(`the body says ${String(value['status'])}`)
  if (value['request_id'] !== headerOf(answer, 'X-Request-Id')) {
    throw new Error('the body has another request id')
  }
}

/** Whether a target is a page or a file, which the document does not describe. */
function isPage(target: string): boolean {
  return pagePaths.test(pathOf(target))
}

function pathOf(target: string): string {
  const rest = target.replace(/^https?:\/\/[^/?#]*\/?/i, '/')
  return rest.split(/[?#]/)[0] ?? ''
}

/** The document's path that serves a target; `undefined` where it knows none. */
function templateOf(api: OpenApi, target: string): string | undefined {
  const path = pathOf(target)
  if (Object.hasOwn(api.paths, path)) return path
  try {
    decodeURIComponent(path)
    return /^\/[0-9A-Za-z_-]{1,10}$/.test(decodeURIComponent(path)) ? '/{code}' : undefined
  } catch {
    return undefined // an escape that stands for no character
  }
}
