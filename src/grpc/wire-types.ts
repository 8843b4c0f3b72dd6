// Protobuf's wire types, and the tag that goes before a field.

/** Wire type of whole numbers, truth values and enums. */
export const VARINT = 0
/** Wire type of doubles. */
export const DOUBLE = 1
/** Wire type of strings, bytes and messages. */
export const DELIMITED = 2

/** The tag of a field by its number and wire type. */
export function tagOf(field: number, wireType: number): number {
  return field * 8 + wireType
}
