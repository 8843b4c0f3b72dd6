// The dependency `zsh`, in which a test completes commands.
import { findAptDependency } from './apt.ts'

/** Finds or installs zsh. Resolves with its command. */
export function findZsh(): Promise<string> {
  return findAptDependency('zsh')
}
