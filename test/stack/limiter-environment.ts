// The settings of a `ratelimit` process for tests: free ports of the loopback address, its own
// folder of rules, no statsd.

/** The settings; `root` contains the folder `config`. Redis may be unavailable. */
export function limiterEnvironment(root: string, redisPort: number): Record<string, string> {
  return {
    HOST: '127.0.0.1',
    PORT: '0',
    GRPC_HOST: '127.0.0.1',
    GRPC_PORT: '0',
    DEBUG_HOST: '127.0.0.1',
    DEBUG_PORT: '0',
    ADMIN_PORT: '0',
    USE_STATSD: 'false',
    RUNTIME_ROOT: root,
    RUNTIME_WATCH_ROOT: 'false',
    REDIS_URL: `127.0.0.1:${String(redisPort)}`,
  }
}
