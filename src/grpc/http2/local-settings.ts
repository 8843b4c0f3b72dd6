// The SETTINGS that this server sends; all others have their default values.
import { settingNames } from './frames.ts'
import { MAX_CONCURRENT_STREAMS } from './open-streams.ts'

/** SETTINGS_MAX_HEADER_LIST_SIZE: the maximum size of a request's headers (RFC 9113 §6.5.2). */
export const MAX_HEADER_LIST_SIZE = 16 * 1024

/** Identifiers and values of the settings. */
export const localSettings = [
  [settingNames.maxConcurrentStreams, MAX_CONCURRENT_STREAMS],
  [settingNames.maxHeaderListSize, MAX_HEADER_LIST_SIZE],
] as const
