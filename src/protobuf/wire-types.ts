// Protobuf's wire types, and the tags of fields.

/** Wire type of integers, booleans and enums. */
export const VARINT = 0
/** Wire type of doubles. */
export const DOUBLE = 1
/** Wire type of strings, bytes and messages. */
export const DELIMITED = 2

/** The tag of a field. */
export function tagOf(field: number, wireType: number): number {
  return field * 8 + wireType
}
