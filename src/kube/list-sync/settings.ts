// Settings of the controller for operator lists; without LIST_PODS_SELECTOR it does not watch them.
import * as z from 'zod'
import { type ConfigOf, dependentSettings, type Setting } from '../../config/config.ts'
import { objectNamesSetting } from '../operator-lists/open-list-target.ts'
import type { ListObject } from './watch-lists.ts'

const SELECTOR_LENGTH_MAX = 1000

/** Settings of operator lists; the first two are also those of `key` and `block`. */
export const listSyncSettings = {
  API_KEYS_SECRET: objectNamesSetting('Secrets that contain the API keys'),
  BLOCKED_TARGETS_CONFIG_MAPS: objectNamesSetting('ConfigMaps that contain the blocked targets'),
  LIST_PODS_SELECTOR: {
    about: 'pods that mount these objects; the leader annotates them when an object changes',
    allowed: `a label selector of up to ${SELECTOR_LENGTH_MAX} characters`,
    fallback: 'unset: the objects are not watched',
    schema: z.string().min(1).max(SELECTOR_LENGTH_MAX).optional(),
  },
} as const satisfies Readonly<Record<string, Setting<unknown>>>

/** The values of the settings. */
export type ListSyncConfig = ConfigOf<typeof listSyncSettings>

/** What the settings configure. */
export interface ListSyncOptions {
  readonly objects: readonly ListObject[]
  /** The label selector of the pods that mount the objects. */
  readonly podSelector: string
}

/** The options; `undefined` if the objects are not watched. */
export function listSyncOptionsOf(config: ListSyncConfig): ListSyncOptions | undefined {
  const { LIST_PODS_SELECTOR: podSelector } = config
  return podSelector === undefined ? undefined : { objects: objectsOf(config), podSelector }
}

function objectsOf(config: ListSyncConfig): ListObject[] {
  const { API_KEYS_SECRET: secrets = [], BLOCKED_TARGETS_CONFIG_MAPS: configMaps = [] } = config
  return [
    ...secrets.map((name) => ({ plural: 'secrets', name }) as const),
    ...configMaps.map((name) => ({ plural: 'configmaps', name }) as const),
  ]
}

/** The checks of settings that depend on each other. */
export const listSyncDependentSettings = dependentSettings(listSyncSettings, (config) =>
  config.LIST_PODS_SELECTOR !== undefined && objectsOf(config).length === 0
    ? ['LIST_PODS_SELECTOR requires API_KEYS_SECRET or BLOCKED_TARGETS_CONFIG_MAPS']
    : [],
)
