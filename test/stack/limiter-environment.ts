// The settings of a `ratelimit` process for tests: free ports on the loopback, rules in its own
// folder, no statsd.

/** The settings; `root` holds the folder `config`. No Redis needs to listen on `redisPort`. */
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
