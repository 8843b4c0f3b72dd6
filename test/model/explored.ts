// Renders an exploration as one line.
import type { Exploration } from './explore.ts'

/** The size of the exploration, and a trace to each violated invariant. */
export function explored(title: string, found: Exploration): string {
  const { states, executions, complete, violations } = found
  const counts = [String(states).padStart(8), String(executions).padStart(6)]
  const size = `${counts.join(' states ')} runs of the code`
  const verdict = violations.size === 0 ? 'holds' : `VIOLATED: ${[...violations.keys()].join('; ')}`
  const traces = [...violations.values()].map((steps) => `${steps.join('\n    ')}\n`)
  return [
    `${title.padEnd(70)} ${size}${complete ? '' : ' (incomplete)'} ${verdict}\n`,
    ...traces,
  ].join('    ')
}
