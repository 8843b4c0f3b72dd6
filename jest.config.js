// Jest with swc, as ES modules. Each project is a test level: `unit` needs only Node.js, the others
// start processes. test/run.ts selects the projects to run.

// A service that stops waits a second for idle connections, and most tests stop one. Therefore those
// of fetch() close earlier; the tests share its dispatcher.
await fetch('data:,') // creates the dispatcher
const key = Symbol.for('undici.globalDispatcher.1')
/** @typedef {{ constructor: new (options: { keepAliveMaxTimeout: number }) => Agent }} Agent */
const realm = /** @type {typeof globalThis & { [key]: Agent }} */ (globalThis)
realm[key] = new realm[key].constructor({ keepAliveMaxTimeout: 100 })

const shared = {
  extensionsToTreatAsEsm: ['.ts'],
  testEnvironment: 'node',
  setupFilesAfterEnv: ['<rootDir>/test/array-lengths.ts'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { parser: { syntax: 'typescript' }, target: 'es2024' }, module: { type: 'es6' } },
    ],
  },
  transformIgnorePatterns: ['/node_modules/'],
}

export default {
  // Long enough for a machine that stalls for seconds; waits in tests have their own deadlines.
  testTimeout: 120_000,
  reporters: ['default', '<rootDir>/test/open-handle-reporter.ts'],
  projects: [
    {
      ...shared,
      displayName: 'unit',
      testMatch: [
        '<rootDir>/src/**/*.test.ts',
        '<rootDir>/{envoy,k8s}/**/*.test.ts',
        '<rootDir>/test/*.test.ts',
        '<rootDir>/test/model/**/*.test.ts',
      ],
    },
    { ...shared, displayName: 'contract', testMatch: ['<rootDir>/test/contract/**/*.test.ts'] },
    { ...shared, displayName: 'component', testMatch: ['<rootDir>/test/component/**/*.test.ts'] },
    { ...shared, displayName: 'cluster', testMatch: ['<rootDir>/test/cluster/**/*.test.ts'] },
    { ...shared, displayName: 'stack', testMatch: ['<rootDir>/test/stack/**/*.test.ts'] },
  ],
}
