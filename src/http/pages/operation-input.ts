// What a client sends with an operation of the OpenAPI document besides its parameters: the body
// and the API key.
import type { OpenApiDocument } from '../create/openapi.ts'
import type { MediaType, Operation, SecurityScheme } from '../create/openapi-document.ts'

/** A request body. */
interface RequestBody extends MediaType {
  /** Its media type. */
  readonly type: string
}

/** The API key of an operation. */
interface OperationKey extends SecurityScheme {
  readonly isRequired: boolean
}

/** The body of the operation, if it has one. */
export function bodyOf({ requestBody }: Operation): RequestBody | undefined {
  const [type, media] = Object.entries(requestBody?.content ?? {})[0] ?? []
  return type === undefined || media === undefined ? undefined : { ...media, type }
}

/** The API key of the operation, if it uses one. */
export function apiKeyOf(
  { components }: OpenApiDocument,
  { security = [] }: Operation,
): OperationKey | undefined {
  const usesKey = security.map((requirement) => 'ApiKey' in requirement)
  if (!usesKey.includes(true)) return undefined
  return { ...components.securitySchemes.ApiKey, isRequired: !usesKey.includes(false) }
}
