// Manifests for tests: pods of our image that meet the restricted Pod Security Standard, and
// Services for them. Pure functions.

/** A pod named `name` with the label `app: name`; runs our image by default. */
export function restrictedPod(
  name: string,
  options: {
    readonly image?: string
    readonly command?: readonly string[]
    readonly args?: readonly string[]
    readonly env?: Readonly<Record<string, string>>
    /** Writable folders, each an emptyDir volume. */
    readonly writable?: readonly string[]
    readonly port?: number
  },
) {
  const { image = 'localhost/curtail:test', command, args, env = {}, writable = [] } = options
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: name } },
    spec: {
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 10,
      securityContext: {
        runAsNonRoot: true,
        fsGroup: 65_532,
        seccompProfile: { type: 'RuntimeDefault' },
      },
      containers: [
        {
          name,
          image,
          imagePullPolicy: 'Never',
          ...(command && { command }),
          ...(args && { args }),
          env: Object.entries(env).map(([key, value]) => ({ name: key, value })),
          ...(command === undefined && {
            readinessProbe: {
              httpGet: { path: '/', port: options.port ?? 8080 },
              periodSeconds: 1,
            },
          }),
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
          volumeMounts: writable.map((mountPath, i) => ({ name: `folder${i}`, mountPath })),
        },
      ],
      volumes: writable.map((_, i) => ({ name: `folder${i}`, emptyDir: {} })),
    },
  }
}

/** A Service named `name` for the pods with the label `app: name`. */
export function serviceOf(name: string, port: { port: number; targetPort: number }) {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: { selector: { app: name }, ports: [port] },
  }
}
