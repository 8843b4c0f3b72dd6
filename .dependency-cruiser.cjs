// The import rules: the modules that each module may import. A module is a folder of src/.
const only = (module, mayImport) => ({
  name: `${module}-imports`,
  severity: 'error',
  comment: `src/${module} may import only: ${mayImport.join(', ') || 'itself'}`,
  from: { path: `^src/${module}/`, pathNot: '\\.test\\.ts$' },
  to: { path: '^src/', pathNot: [module, ...mayImport].map((name) => `^src/${name}/`) },
})
const driver = (pkg, home) => ({
  name: `${pkg}-only-in-${home}`.replace(/[@/:]/g, ''),
  severity: 'error',
  from: { path: '^src/', pathNot: [`^src/${home}/`, '\\.test\\.ts$'] },
  to: { path: `^(node_modules/)?${pkg}(/|$)`, dependencyTypesNot: ['type-only'] },
})
const junk = '/(index|util|utils|helper|helpers|common|shared|misc|lib|base|manager|impl)(/|[.]ts$)'
const algorithm = '[^/]+-(window|bucket|counter|log)\\.ts$'
const pure = ['links', 'codes', 'limits']
const useCases = ['resolve', 'create', 'pools', 'admin', 'transfer', 'limiter', 'drain']
const shared = ['process', 'config', 'telemetry', 'resilience']

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'no-orphans',
      severity: 'error',
      from: {
        orphan: true,
        pathNot: [
          '\\.d\\.ts$',
          '^src/(launch|compile-cache)\\.js$',
          '^src/web/',
          '^test/(open-handle-reporter|cluster/test-order)[.]ts$',
          '[.]config[.]js$',
        ],
      },
      to: {},
    },
    {
      name: 'no-junk-drawers',
      severity: 'error',
      from: {},
      to: { path: junk, pathNot: 'node_modules' },
    },
    {
      name: 'no-junk-drawers-2',
      severity: 'error',
      from: { path: junk, pathNot: 'node_modules' },
      to: {},
    },
    only('protobuf', []),
    ...['links', 'codes'].map((module) => only(module, [])),
    only('limits', ['protobuf']),
    only('policies', ['limits', 'protobuf']),
    ...shared.map((module) => only(module, shared)),
    only('resolve', ['links', 'codes', ...shared]),
    only('create', ['links', 'codes', ...shared]),
    only('pools', ['links', 'codes', ...shared]),
    only('admin', ['links', 'codes', ...shared]),
    only('transfer', ['links', 'codes', ...shared]),
    only('limiter', ['limits', 'protobuf', ...shared]),
    only('clients', ['drain', 'transfer', 'protobuf', ...shared]),
    only('drain', shared),
    only('http', [...pure, ...useCases, ...shared]),
    only('grpc', ['limits', 'limiter', 'policies', 'protobuf', ...shared]),
    only('kube', ['codes', 'policies', ...shared]),
    only('stores', [...pure, ...shared]),
    {
      name: 'dashboards-import-metric-names-only',
      severity: 'error',
      from: { path: '^charts/dashboards/', pathNot: '\\.test\\.ts$' },
      to: { path: '^src/', pathNot: '^src/telemetry/metrics\\.ts$' },
    },
    {
      name: 'http2-imports-itself-only',
      severity: 'error',
      from: { path: '^src/grpc/http2/', pathNot: '\\.test\\.ts$' },
      to: { path: '^src/', pathNot: '^src/grpc/http2/' },
    },
    {
      name: 'kube-framework-does-not-import-resources',
      severity: 'error',
      from: { path: '^src/kube/[^/]+\\.ts$', pathNot: '\\.test\\.ts$' },
      to: { path: '^src/kube/(code-pool|list-sync|operator-lists|rate-limit-policy)/' },
    },
    {
      name: 'pure-modules-do-no-io',
      severity: 'error',
      from: { path: '^src/(links|codes|limits|policies|transfer)/', pathNot: '\\.test\\.ts$' },
      to: {
        dependencyTypes: ['core', 'npm', 'npm-dev', 'npm-no-pkg'],
        pathNot: ['^(node:)?(assert(/strict)?|crypto)$', '^node_modules/(zod|yaml|js-yaml)/'],
      },
    },
    {
      name: 'stores-do-not-import-each-other',
      severity: 'error',
      from: { path: '^src/stores/([^/]+)/', pathNot: '\\.test\\.ts$' },
      to: { path: '^src/stores/([^/]+)/', pathNot: '^src/stores/$1/' },
    },
    {
      name: 'roles-do-not-import-each-other',
      severity: 'error',
      from: { path: '^src/roles/([^/]+)\\.ts$' },
      to: { path: '^src/roles/', pathNot: '^src/roles/$1\\.ts$' },
    },
    {
      name: 'only-main-imports-roles',
      severity: 'error',
      from: { path: '^src/', pathNot: ['^src/main\\.ts$', '^src/roles/'] },
      to: { path: '^src/roles/' },
    },
    {
      name: 'source-never-imports-tests',
      severity: 'error',
      from: { path: '^src/', pathNot: '\\.test\\.ts$' },
      to: { path: '(\\.test\\.ts$|^test/|^loadtest/)' },
    },
    {
      name: 'only-their-list-names-algorithms',
      severity: 'error',
      from: {
        path: '^src/',
        pathNot: ['^src/limits/algorithms\\.ts$', `^src/limits/${algorithm}`, '\\.test\\.ts$'],
      },
      to: { path: `^src/limits/${algorithm}` },
    },
    driver('express', 'http'),
    driver('(node:)?sqlite', 'stores/sqlite'),
    driver('ioredis', 'stores/redis'),
    driver('cassandra-driver', 'stores/cassandra'),
    driver('@grpc', '(grpc|clients/xds)'),
    driver('@kubernetes', 'kube'),
    driver('prom-client', 'telemetry'),
    driver('pino', 'telemetry'),
    driver('@opentelemetry', 'telemetry'),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default'],
    },
  },
}
