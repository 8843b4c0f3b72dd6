// The list of formats that can be imported. formats.test.ts runs every member.
import type { Format } from './format.ts'
import { bitly } from './formats/bitly.ts'
import { csv } from './formats/csv.ts'
import { kutt } from './formats/kutt.ts'
import { ndjson } from './formats/ndjson.ts'
import { shlink } from './formats/shlink.ts'
import { yourls } from './formats/yourls.ts'

/** Every format, in the order of the documentation. */
export const formats: readonly Format[] = [yourls, shlink, kutt, bitly, csv, ndjson]
