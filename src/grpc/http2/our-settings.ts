// The SETTINGS that this server sends; those left out keep the values HTTP/2 begins with.
import { settingNames } from './frames.ts'
import { STREAMS_MAX } from './open-streams.ts'

/** What the fields of a request may count for. */
export const HEADER_LIST_BYTES_MAX = 16 * 1024

/** Name and value of each. */
export const ourSettings = [
  [settingNames.streamsMax, STREAMS_MAX],
  [settingNames.headerListBytesMax, HEADER_LIST_BYTES_MAX],
] as const
