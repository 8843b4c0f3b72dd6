// Typed lint rules. Prettier checks the format, dependency-cruiser the import rules.
import { defineConfig } from 'eslint/config'
import tseslint from 'typescript-eslint'

export default defineConfig(
  { ignores: ['node_modules', 'data', 'coverage', 'src/web/**', '*.cjs'] },
  tseslint.configs.strictTypeChecked,
  tseslint.configs.stylisticTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      // `interface` and `type` are both allowed: unions need `type`.
      '@typescript-eslint/consistent-type-definitions': 'off',
      complexity: ['error', 15],
      'max-params': ['error', 3],
      'no-restricted-properties': [
        'error',
        { object: 'process', property: 'env', message: 'Only main.ts reads the environment.' },
      ],
      eqeqeq: ['error', 'always', { null: 'ignore' }],
    },
  },
  {
    // Express recognizes an error handler by its four parameters.
    files: ['src/http/error-handler.ts'],
    rules: { 'max-params': 'off' },
  },
  {
    files: [
      'src/main.ts',
      'src/launch.js',
      'src/compile-cache.js',
      'bin/**',
      'src/telemetry/tracing.ts',
      'test/**',
      'loadtest/**',
      'envoy/**',
      'k8s/**',
    ],
    rules: { 'no-restricted-properties': 'off' },
  },
)
