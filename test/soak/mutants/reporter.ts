// Stryker's reporter `undetected`: prints each mutant that no test detects at once, since a module
// takes hours.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Stryker } from '@stryker-mutator/core'

type MutantResult = Awaited<ReturnType<Stryker['runMutationTest']>>[number]

/** Stryker's folder, in which it copies the project. */
export const MUTANTS_FOLDER = '.mutants'
/** A file in the folder, with the source file of each mutant, for the runner. */
export const SOURCES_FILE = 'sources.json'
/** Source files by the ID of their mutants. */
export type Sources = Readonly<Record<string, string>>

/** Whether a mutant counts against the score. */
export const isUndetected = ({ status }: MutantResult) =>
  status === 'Survived' || status === 'NoCoverage'

const sourceOf = (path: string) => path.replace(/^.*?(?=src\/)/, '')

function onMutationTestingPlanReady({
  mutantPlans,
}: {
  readonly mutantPlans: readonly {
    readonly mutant: { readonly id: string; readonly fileName: string }
  }[]
}): void {
  const sources = mutantPlans.map(({ mutant: { id, fileName } }) => [id, sourceOf(fileName)])
  writeFileSync(join(MUTANTS_FOLDER, SOURCES_FILE), JSON.stringify(Object.fromEntries(sources)))
}

function onMutantTested(mutant: MutantResult): void {
  if (!isUndetected(mutant)) return
  const { fileName, location, mutatorName, replacement, status } = mutant
  const place = `${sourceOf(fileName)}:${String(location.start.line)}`
  const line = `${status} ${place} ${mutatorName}: ${replacement.replaceAll(/\s+/g, ' ')}`
  process.stdout.write(`${line}\n`)
}

/** Loaded by Stryker. */
export const strykerPlugins = [
  { kind: 'Reporter', name: 'undetected', value: { onMutationTestingPlanReady, onMutantTested } },
] as const
