// The SETTINGS that this server sends; the others keep their defaults.
import { settingNames } from './frames.ts'
import { STREAMS_MAX } from './open-streams.ts'

/** Maximum size of a request's header list (RFC 9113 §6.5.2). */
export const HEADER_LIST_BYTES_MAX = 16 * 1024

/** Names and values of the settings. */
export const localSettings = [
  [settingNames.maxConcurrentStreams, STREAMS_MAX],
  [settingNames.maxHeaderListSize, HEADER_LIST_BYTES_MAX],
] as const
