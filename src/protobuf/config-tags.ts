// The tags of ratelimit.config.ratelimit.v3.RateLimitConfig and of its messages, and the key of our
// fields in the metadata of a descriptor.
import { DELIMITED, tagOf, VARINT } from './wire-types.ts'

/** `name` of a RateLimitConfig. */
export const CONFIG_NAME = tagOf(1, DELIMITED)
/** `domain` of a RateLimitConfig. */
export const CONFIG_DOMAIN = tagOf(2, DELIMITED)
/** `descriptors` of a RateLimitConfig. */
export const CONFIG_DESCRIPTORS = tagOf(3, DELIMITED)
/** `key` of a descriptor. */
export const DESCRIPTOR_KEY = tagOf(1, DELIMITED)
/** `value` of a descriptor. */
export const DESCRIPTOR_VALUE = tagOf(2, DELIMITED)
/** `rate_limit` of a descriptor. */
export const DESCRIPTOR_LIMIT = tagOf(3, DELIMITED)
/** `descriptors` of a descriptor. */
export const DESCRIPTOR_DESCRIPTORS = tagOf(4, DELIMITED)
/** `shadow_mode` of a descriptor. */
export const DESCRIPTOR_SHADOW = tagOf(5, VARINT)
/** `detailed_metric` of a descriptor. */
export const DESCRIPTOR_DETAILED = tagOf(6, VARINT)
/** `quota_mode` of a descriptor. */
export const DESCRIPTOR_QUOTA = tagOf(7, VARINT)
/** `metadata` of a descriptor. */
export const DESCRIPTOR_METADATA = tagOf(8, DELIMITED)
/** `unit` of a limit. */
export const LIMIT_UNIT = tagOf(1, VARINT)
/** `requests_per_unit` of a limit. */
export const LIMIT_REQUESTS = tagOf(2, VARINT)
/** `unlimited` of a limit. */
export const LIMIT_UNLIMITED = tagOf(3, VARINT)
/** `name` of a limit. */
export const LIMIT_NAME = tagOf(4, DELIMITED)
/** `replaces` of a limit. */
export const LIMIT_REPLACES = tagOf(5, DELIMITED)
/** `name` of a replaced limit. */
export const REPLACE_NAME = tagOf(1, DELIMITED)

/** The key in `metadata` whose fields other servers ignore; responses do not return it. */
export const CURTAIL_KEY = 'curtail.dev'
