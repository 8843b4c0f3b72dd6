// Stryker's reporter `undetected`: prints each mutant that no test detects at once, since a module
// takes hours.
import type { Stryker } from '@stryker-mutator/core'

type MutantResult = Awaited<ReturnType<Stryker['runMutationTest']>>[number]

/** Whether a mutant counts against the score. */
export const isUndetected = ({ status }: MutantResult) =>
  status === 'Survived' || status === 'NoCoverage'

function onMutantTested(mutant: MutantResult): void {
  if (!isUndetected(mutant)) return
  const { fileName, location, mutatorName, replacement, status } = mutant
  const place = `${fileName.replace(/^.*?(?=src\/)/, '')}:${String(location.start.line)}`
  const line = `${status} ${place} ${mutatorName}: ${replacement.replaceAll(/\s+/g, ' ')}`
  process.stdout.write(`${line}\n`)
}

/** Loaded by Stryker. */
export const strykerPlugins = [
  { kind: 'Reporter', name: 'undetected', value: { onMutantTested } },
] as const
