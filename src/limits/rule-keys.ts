// The keys of a rules file and the places where each is allowed. Faults have the messages of
// envoyproxy/ratelimit (the reference), which does not check the places: a key that it ignores is a
// warning here.
import type { YamlNode, YamlMap } from './parse-yaml.ts'
import type { Diagnostics } from './rule-fault.ts'

/** Place of a mapping; `nowhere`: under a key whose value must not be a mapping. */
type Place = 'file' | 'descriptor' | 'limit' | 'replaced' | 'nowhere'

/** The reference's keys, with the places where they have an effect. */
const referenceKeys: Readonly<Record<string, readonly Place[]>> = {
  domain: ['file'],
  descriptors: ['file', 'descriptor'],
  key: ['descriptor'],
  value: ['descriptor'],
  rate_limit: ['descriptor'],
  shadow_mode: ['descriptor'],
  quota_mode: ['descriptor'],
  detailed_metric: ['descriptor'],
  value_to_metric: ['descriptor'],
  share_threshold: ['descriptor'],
  metadata: ['descriptor'],
  unit: ['limit'],
  requests_per_unit: ['limit'],
  unlimited: ['limit'],
  name: ['limit', 'replaced'],
  replaces: ['limit'],
}

/** The additional keys of Curtail. */
const curtailKeys: Readonly<Record<string, readonly Place[]>> = {
  rate_limits: ['descriptor'],
  hashed: ['descriptor'],
  algorithm: ['limit'],
  window: ['limit'],
  burst: ['limit'],
  deny_consumes: ['limit'],
  on_store_error: ['limit'],
}

const placeNames: Readonly<Record<Place, string>> = {
  file: 'the file itself',
  descriptor: 'a descriptor',
  limit: 'rate_limit',
  replaced: 'replaces',
  nowhere: 'nothing',
}

const placesOfChildren: Readonly<Record<string, Place>> = {
  descriptors: 'descriptor',
  rate_limit: 'limit',
  rate_limits: 'limit',
  replaces: 'replaced',
}

const SHOWN_ITEMS_MAX = 10

/** Checks the keys of a file: each mapping and list once, even if many aliases refer to it. */
export function checkKeys(root: YamlMap, diagnostics: Diagnostics): void {
  const checked = new Set<YamlNode>()
  const checkMap = (map: YamlMap, place: Place) => {
    if (checked.has(map)) return
    checked.add(map)
    for (const { key, value } of map.entries) {
      const name = checkKey(key, place, diagnostics)
      if (name !== 'metadata') checkValue(value, placesOfChildren[name] ?? 'nowhere')
    }
  }
  const checkValue = (value: YamlNode, place: Place) => {
    if (value.kind === 'map') checkMap(value, place)
    else if (value.kind === 'list') {
      if (checked.has(value)) return
      checked.add(value)
      for (const item of value.items) {
        if (item.kind === 'map') checkMap(item, place)
        else {
          const message = 'config error, yaml file contains list of type other than map'
          diagnostics.fault(item.line, `${message}: ${show(item)}`)
        }
      }
    } else if (isUnsupportedScalar(value)) diagnostics.fault(value.line, 'error checking config')
  }
  checkMap(root, 'file')
}

/** Values that the reference does not accept as a string, a flag or a number. */
function isUnsupportedScalar(value: YamlNode): boolean {
  return value.kind === 'float' || value.kind === 'time'
}

function checkKey(key: YamlNode, place: Place, diagnostics: Diagnostics): string {
  if (key.kind !== 'string') {
    diagnostics.fault(key.line, `config error, key is not of type string: ${show(key)}`)
    return ''
  }
  const name = key.text
  const referencePlaces = Object.hasOwn(referenceKeys, name) ? referenceKeys[name] : undefined
  const places =
    referencePlaces ?? (Object.hasOwn(curtailKeys, name) ? curtailKeys[name] : undefined)
  if (places === undefined) diagnostics.fault(key.line, `config error, unknown key '${name}'`)
  else if (!places.includes(place) && place !== 'nowhere') {
    const allowed = places.map((each) => placeNames[each]).join(' or ')
    const message = `key '${name}' is allowed only in ${allowed}`
    if (referencePlaces === undefined) diagnostics.fault(key.line, `config error, ${message}`)
    else diagnostics.warn(key.line, `${message}: it is ignored`)
  }
  return name
}

function showItem(value: YamlNode): string {
  return value.kind === 'list' ? '[...]' : show(value)
}

/** A value as in the reference's messages, but long or nested values are truncated. */
function show(value: YamlNode): string {
  switch (value.kind) {
    case 'null':
      return '<nil>'
    case 'list':
      return `[${value.items.slice(0, SHOWN_ITEMS_MAX).map(showItem).join(' ')}]`
    case 'map':
      return 'map[...]'
    case 'bool':
      return String(value.value)
    case 'int':
    case 'float':
    case 'time':
    case 'string':
      return value.text
  }
}
