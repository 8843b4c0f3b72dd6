// The jest configuration of the mutation tests: one project, since Stryker's runner supports no
// more, with the test files that MUTANT_TESTS lists.
import config from '../../../jest.config.js'

const [unit] = config.projects

export default {
  ...unit,
  rootDir: process.cwd(),
  testMatch: (process.env['MUTANT_TESTS'] ?? '').split(' ').map((glob) => `<rootDir>/${glob}`),
  testTimeout: Number(process.env['MUTANT_TEST_MS']),
  runner: '<rootDir>/test/soak/mutants/runner.ts',
  // Stryker does not resolve <rootDir>.
  testEnvironment: `${process.cwd()}/test/soak/mutants/environment.ts`,
}
