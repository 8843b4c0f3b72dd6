// The type of the OpenAPI document: the subset of OpenAPI 3.1 in use.

/** A JSON Schema. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** A reference into the document. */
export interface Reference {
  readonly $ref: string
}

/** A header of a response. */
export interface HeaderObject {
  readonly description: string
  readonly schema: JsonSchema
}

/** The body of a request or response in one media type. */
export interface MediaType {
  readonly schema: JsonSchema
  readonly example?: unknown
}

/** Bodies by media type. */
export type Content = Readonly<Record<string, MediaType>>

/** One response of an operation. */
export interface ResponseObject {
  readonly description: string
  readonly headers?: Readonly<Record<string, Reference>>
  readonly content?: Content
}

/** A path parameter or a request header. */
export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'header'
  readonly required: boolean
  readonly description: string
  readonly schema: JsonSchema
  readonly example: string
}

/** How clients authenticate. */
export interface SecurityScheme {
  readonly type: 'apiKey'
  readonly in: 'header'
  /** The name of the header. */
  readonly name: string
  readonly description: string
}

/** The security schemes that a request uses together, by their names; empty: none. */
type SecurityRequirement = Readonly<Record<string, readonly string[]>>

/** One method of one path. */
export interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly parameters?: readonly Parameter[]
  /** The alternatives. @default only anonymous */
  readonly security?: readonly SecurityRequirement[]
  readonly requestBody?: { readonly required: true; readonly content: Content }
  readonly responses: Readonly<Record<string, ResponseObject>>
}

/** One operation with its method and path. */
export interface PlacedOperation {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

/** The methods of one path. */
export type PathItem = Readonly<Partial<Record<'get' | 'head' | 'post', Operation>>>
