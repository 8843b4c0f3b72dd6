// Specs of CodePools, and words of the API server's error for each. Contains no expectation.

const NAME_FORM = 'the name of a Secret must consist of lower case letters'
const withLimits = (limits: object, requests?: object) => ({
  job: { resources: { limits, ...(requests !== undefined && { requests }) } },
})

/** The fields that replace those of a valid spec, and words of the error; or `accepted`. */
export const codePoolSpecs: readonly (readonly [object, string])[] = [
  [{}, 'accepted'],
  [{ headroomHours: 24, paused: true, storeName: 'default' }, 'accepted'],
  [{ job: { resources: { limits: { cpu: 1, memory: '129Mi' } } } }, 'accepted'],
  [{ target: 2999 }, 'spec.target must be at least spec.lowWater + 1000'],
  [{ lowWater: 999 }, 'spec.lowWater in body should be greater than or equal to 1000'],
  [{ target: 100_000_001 }, 'should be less than or equal to 100000000'],
  [{ target: 'much' }, 'must be of type integer'],
  [{ headroomHours: 0 }, 'should be greater than or equal to 1'],
  [{ storeName: 'a b' }, 'spec.storeName in body should match'],
  [{ codeSecret: {} }, 'spec.codeSecret.name: Required value'],
  [{ codeSecret: { name: 'a', key: '/' } }, 'spec.codeSecret.key in body should match'],
  [{ job: { activeDeadlineSeconds: 1 } }, 'should be greater than or equal to 60'],
  [{ targets: 1 }, 'unknown field "spec.targets"'],
  [{ codeSecret: { name: 'a.b-1.c', key: '.a..b' } }, 'accepted'],
  ...['A', 'a_b', '-a', 'a.', 'a..b', 'a.-b'].map(
    (name) => [{ codeSecret: { name } }, NAME_FORM] as const,
  ),
  ...['.', '..', '..a'].map(
    (key) => [{ codeSecret: { name: 'a', key } }, "must not be '.' or start with '..'"] as const,
  ),
  [withLimits({ memory: '1Gi', 'ephemeral-storage': '1e9', 'a.dev/gpu': 1 }), 'accepted'],
  [withLimits({ memory: 134_217_729, cpu: '0.5', 'hugepages-2Mi': '4Mi' }), 'accepted'],
  ...['lots', '1MiB', '1 Gi', '1ki', ''].map(
    (memory) =>
      [withLimits({ memory }), 'a quantity must be a number with an optional unit'] as const,
  ),
  [withLimits({ cpu: '-1' }), 'a quantity must not be negative'],
  [withLimits({ cpu: -1 }), 'a quantity must not be negative'],
  ...[0, 512, '512', '512m', '128Mi'].map(
    (memory) => [withLimits({ memory }), 'memory must be above 128Mi'] as const,
  ),
  [{ job: { resources: { requests: { memory: 64 } } } }, 'memory must be 0 or at least 1Mi'],
  [{ job: { resources: { requests: { memory: 0, cpu: '0' } } } }, 'accepted'],
  [{ job: { resources: { requests: { memory: '0' } } } }, 'accepted'],
  [withLimits({ ram: '1Gi' }), 'a resource must be cpu, memory, ephemeral-storage'],
  [withLimits({ cpu: 1 }, { cpu: '1001m' }), 'a request must not be above the limit'],
  [withLimits({ cpu: 1 }, { cpu: '1000m', memory: '2Gi' }), 'accepted'],
]
