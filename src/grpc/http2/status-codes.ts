// The gRPC status codes that this service uses.

/** Status codes by name. */
export const statusCodes = {
  OK: 0,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  RESOURCE_EXHAUSTED: 8,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
} as const

/** The name of a status code. */
type StatusName = keyof typeof statusCodes

/** The response of a unary call. */
export type UnaryResponse = { readonly code: 'OK'; readonly message: Buffer } | CallFault

/** The error status of a call, with a message for the client. */
export interface CallFault {
  readonly code: Exclude<StatusName, 'OK'>
  readonly details: string
}
