// The walls of the house: which room may import which. A room is a folder of src/.
const only = (room, mayImport) => ({
  name: `${room}-imports`,
  severity: 'error',
  comment: `src/${room} may import only: ${mayImport.join(', ') || 'itself'}`,
  from: { path: `^src/${room}/`, pathNot: '\\.test\\.ts$' },
  to: { path: '^src/', pathNot: [room, ...mayImport].map((r) => `^src/${r}/`) },
})
const driver = (pkg, home) => ({
  name: `${pkg}-only-in-${home}`.replace(/[@/:]/g, ''),
  severity: 'error',
  from: { path: '^src/', pathNot: [`^src/${home}/`, '\\.test\\.ts$'] },
  to: { path: `^(node_modules/)?${pkg}(/|$)`, dependencyTypesNot: ['type-only'] },
})
const junk = '/(index|util|utils|helper|helpers|common|shared|misc|lib|base|manager|impl)(/|[.]ts$)'
const pure = ['links', 'codes', 'limits']

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
          '^src/launch\\.js$',
          '^src/web/',
          '^test/tell-leftovers[.]ts$',
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
    ...pure.map((room) => only(room, [])),
    only('process', []),
    only('follow', ['links', 'codes', 'process']),
    only('shorten', ['links', 'codes', 'process']),
    only('charge', ['limits', 'process']),
    only('http', [...pure, 'follow', 'shorten', 'charge', 'process']),
    only('grpc', ['limits', 'charge', 'process']),
    only('kube', ['codes', 'process']),
    only('dashboards', ['process']),
    only('stores', [...pure, 'process']),
    {
      name: 'pure-rooms-touch-nothing',
      severity: 'error',
      from: { path: '^src/(links|codes|limits)/', pathNot: '\\.test\\.ts$' },
      to: {
        dependencyTypes: ['core', 'npm', 'npm-dev', 'npm-no-pkg'],
        pathNot: ['^(node:)?(assert(/strict)?|crypto)$', '^node_modules/(zod|yaml)/'],
      },
    },
    {
      name: 'stores-do-not-know-each-other',
      severity: 'error',
      from: { path: '^src/stores/([^/]+)/', pathNot: '\\.test\\.ts$' },
      to: { path: '^src/stores/([^/]+)/', pathNot: '^src/stores/$1/' },
    },
    {
      name: 'roles-do-not-know-each-other',
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
    driver('express', 'http'),
    driver('(node:)?sqlite', 'stores/sqlite'),
    driver('ioredis', 'stores/redis'),
    driver('cassandra-driver', 'stores/cassandra'),
    driver('@grpc', 'grpc'),
    driver('@kubernetes', 'kube'),
    driver('prom-client', 'process'),
    driver('pino', 'process'),
    driver('@opentelemetry', 'process'),
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
