// One incident of the runbook test, and the commands that several incidents use.
import type { CleanUp } from './faults.ts'
import type { Placeholders, RunbookRunner } from './runbook-runner.ts'

/** What an incident needs to break the release. */
export interface IncidentContext {
  readonly edge: string
  readonly runner: RunbookRunner
}

/** A command of a runbook, and the values for its placeholders. */
interface RunbookCommand {
  readonly line: string
  readonly placeholders?: () => Promise<Placeholders>
}

/** A fault, the alerts that report it, and its remedy. */
export interface Incident {
  readonly title: string
  readonly alerts: readonly string[]
  /** Causes the fault. */
  readonly breakRelease: (context: IncidentContext) => Promise<CleanUp>
  readonly remedy: readonly RunbookCommand[]
}

/** For a fault that its remedy removes. */
export const nothingToCleanUp: CleanUp = () => Promise.resolve()
/** A command, as its runbook prints it. */
export const command = (
  line: string,
  placeholders?: RunbookCommand['placeholders'],
): RunbookCommand => ({ line, ...(placeholders && { placeholders }) })
/** Reverts manual changes of the chart's objects. */
export const restoreRelease = command(
  'helm -n $NS upgrade RELEASE CHART --reuse-values --server-side=true --force-conflicts',
)
