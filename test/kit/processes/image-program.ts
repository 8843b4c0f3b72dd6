// The program of the image without its base: the bundle, and the options of Node.js with which the
// chart runs a role.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { imageEnvironment } from '../../../k8s/image/build.ts'
import { bundle } from '../../../k8s/image/bundle.ts'
import { containersOf, podsOf, renderChart } from '../chart/chart-render.ts'

const ENTRY_FILE = '/app/main.js'

/** The variables of the image, for programs outside of it. */
export const imageVariables = { ...imageEnvironment, PATH: process.env['PATH'] ?? '' }

/** A bundle, and how the chart runs it. */
export interface ImageProgram {
  readonly entryFile: string
  /** The options of Node.js for a role. Throws an error if the chart does not run the role. */
  optionsOf(role: string): readonly string[]
}

/** Writes the bundle to `folder`, which must not exist, and reads the commands of the chart. */
export async function writeImageProgram(folder: string): Promise<ImageProgram> {
  await mkdir(folder)
  await bundle(folder)
  const containers = podsOf(await renderChart({ major: 4 })).flatMap(containersOf)
  return {
    entryFile: join(folder, 'main.js'),
    optionsOf(role) {
      const command = containers.find((one) => one.command?.at(-1) === role)?.command
      if (command === undefined) throw new Error(`the chart does not run the role ${role}`)
      return command.slice(1, command.indexOf(ENTRY_FILE))
    },
  }
}
