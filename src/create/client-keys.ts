// The API keys of the clients of a process: reads the files of API_KEYS, and reloads them when they
// change.
import { setImmediate } from 'node:timers/promises'
import { type ConfigOf, fileSettings } from '../config/config.ts'
import { checkList } from '../process/check-list.ts'
import type { Stop } from '../process/stop.ts'
import { readListFiles, type WatchedListOptions, watchList } from '../process/watched-list.ts'
import type { Clock } from '../resilience/deadline.ts'
import { type ApiKey, noApiKeys, parseApiKeySlices } from './api-keys.ts'
import { apiKeySettings } from './settings.ts'

/** The keys of clients. */
export interface ClientKeys {
  /** The valid key in the value of an X-API-Key header. */
  readonly find: (header: unknown) => ApiKey | undefined
  /** Whether creates without a valid key are rejected. */
  readonly isRequired: boolean
}

/** No keys: every create is admitted without a key. */
export const noClientKeys: ClientKeys = { find: () => undefined, isRequired: false }

const SUFFIX = '.ndjson'

/** The check of the files of API_KEYS. */
export const apiKeysCheck = fileSettings(
  { API_KEYS: apiKeySettings.API_KEYS },
  ({ API_KEYS: path }) => checkList('API_KEYS', { path, suffix: SUFFIX, load: loadApiKeys }),
)

/** Resolves after the first load, even if it failed. */
export async function openClientKeys(
  config: ConfigOf<typeof apiKeySettings>,
  service: Pick<WatchedListOptions<unknown>, 'log' | 'metrics'> & { onStop(stop: Stop): void },
  nowMs: Clock,
): Promise<ClientKeys> {
  const list = await watchList({
    name: 'api-keys',
    path: config.API_KEYS,
    suffix: SUFFIX,
    empty: noApiKeys,
    load: loadApiKeys,
    log: service.log,
    metrics: service.metrics,
  })
  service.onStop(list.stop)
  return {
    find: (header) => list.current().find(header, nowMs()),
    isRequired: config.API_KEY_REQUIRED,
  }
}

async function loadApiKeys(paths: readonly string[]) {
  const slices = parseApiKeySlices(await readListFiles(paths))
  let slice = slices.next()
  while (slice.done !== true) {
    await setImmediate() // requests in flight continue
    slice = slices.next()
  }
  return slice.value
}
