// The tags of google.protobuf.Struct, Value and ListValue.
import { DELIMITED, DOUBLE, tagOf, VARINT } from './wire-types.ts'

/** `fields` of a Struct: its entries. */
export const STRUCT_FIELDS = tagOf(1, DELIMITED)
/** `key` of an entry. */
export const ENTRY_KEY = tagOf(1, DELIMITED)
/** `value` of an entry. */
export const ENTRY_VALUE = tagOf(2, DELIMITED)
/** `null_value` of a Value. */
export const VALUE_NULL = tagOf(1, VARINT)
/** `number_value` of a Value. */
export const VALUE_NUMBER = tagOf(2, DOUBLE)
/** `string_value` of a Value. */
export const VALUE_STRING = tagOf(3, DELIMITED)
/** `bool_value` of a Value. */
export const VALUE_BOOL = tagOf(4, VARINT)
/** `struct_value` of a Value. */
export const VALUE_STRUCT = tagOf(5, DELIMITED)
/** `list_value` of a Value. */
export const VALUE_LIST = tagOf(6, DELIMITED)
/** `values` of a ListValue. */
export const LIST_VALUES = tagOf(1, DELIMITED)
