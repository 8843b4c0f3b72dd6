{{/* The settings of envoy.yaml, named as in EdgeSettings (envoy/edge-settings.ts), as YAML. */}}
{{- define "curtail.edgeSettings" -}}
{{- $edge := .Values.edge -}}
{{- $local := include "curtail.localLimits" . | fromYaml -}}
{{- $allowance := include "curtail.allowance" . | fromYaml -}}
baseUrl: {{ .Values.baseUrl | trimSuffix "/" | quote }}
listenAddress: '::'
dualStack: true
httpPort: 8080
tls: {{ $edge.tls.enabled }}
httpsPort: 8443
certificatePath: /etc/curtail/edge/certificate.yaml
certificateFolder: /etc/curtail/edge-certificate
metricsPort: 9090
adminPort: 9901
trustedHops: {{ $edge.trustedHops | int }}
proxyProtocol: {{ $edge.proxyProtocol }}
failClosed: {{ $edge.failClosed }}
redirectEndpoints: [{ host: {{ include "curtail.host" (list . "redirect") }}, port: 8080 }]
createEndpoints: [{ host: {{ include "curtail.host" (list . "create") }}, port: 8080 }]
limiterEndpoints: [{ host: {{ include "curtail.host" (list . "ratelimit") }}, port: 8081 }]
accessLogPath: /dev/stdout
connectionsMax: {{ $edge.connectionsMax | int }}
heapBytesMax: {{ mul $edge.heapMebibytes 1048576 }}
requestHeadersTimeout: {{ $edge.requestHeadersTimeout }}
requestTimeout: {{ $edge.requestTimeout }}
idleTimeout: {{ $edge.idleTimeout }}
ceilingPerSecond: {{ $edge.localLimits.ceilingPerSecond | int }}
createBurst: {{ $local.createBurst | int }}
createPerSecond: {{ $local.createPerSecond | int }}
createTotalBurst: {{ $local.createTotalBurst | int }}
createTotalPerSecond: {{ $local.createTotalPerSecond | int }}
reportBurst: {{ $local.reportBurst | int }}
reportPerHour: {{ $local.reportPerHour | int }}
redirectBurst: {{ sub $local.redirectBurst $allowance.burst }}
redirectPerSecond: {{ sub $local.redirectPerSecond $allowance.perSecond }}
allowanceBurst: {{ $allowance.burst | int }}
allowancePerMinute: {{ $allowance.perMinute | int }}
allowanceLimit: {{ $allowance.limiterBurst | int }}
allowanceRemaining: {{ $allowance.remaining | int }}
tracingHost: {{ $edge.tracing.host | quote }}
tracingPort: {{ $edge.tracing.port | int }}
tracingSamplePercent: {{ $edge.tracing.samplePercent }}
{{- end -}}

{{/* The probes of Envoy. A draining process must keep running; only a hung one is restarted. */}}
{{- define "curtail.envoyProbes" -}}
startupProbe:
  httpGet: { path: /ready, port: metrics }
  periodSeconds: 1
  timeoutSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: { path: "/stats/prometheus?filter=^server.live$", port: metrics }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: { path: /ready, port: metrics }
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 3
{{- end -}}
