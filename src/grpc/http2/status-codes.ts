// The codes that calls of gRPC end with, of those that are said here. Touches nothing.

/** Codes by name. */
export const statusCodes = {
  OK: 0,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  RESOURCE_EXHAUSTED: 8,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
} as const

/** One of the names. */
type StatusName = keyof typeof statusCodes

/** What a call with one answer is answered. */
export type UnaryAnswer = { readonly code: 'OK'; readonly message: Buffer } | CallFault

/** Why a call does not go well, in a sentence for the caller. */
export interface CallFault {
  readonly code: Exclude<StatusName, 'OK'>
  readonly details: string
}
