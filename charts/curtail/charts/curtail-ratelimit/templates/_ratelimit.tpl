{{/* The objects of the rate limiter. */}}

{{/* (root): all objects of the rate limiter and of its bundled Redis. */}}
{{- define "curtail.ratelimit" -}}
{{- $ofPods := list . "ratelimit" -}}
{{- include "curtail.rulesConfigMap" . }}
---
apiVersion: v1
kind: Service
metadata:
  {{- include "curtail.metadata" $ofPods | nindent 2 }}
spec:
  clusterIP: None
  selector:
    {{- include "curtail.selectorLabels" $ofPods | nindent 4 }}
  ports:
    - { name: grpc, port: 8081, targetPort: grpc }
    - { name: http, port: 8080, targetPort: http }
    - { name: metrics, port: 9090, targetPort: metrics }
---
{{ include "curtail.ratelimitDeployment" . }}
{{- include "curtail.ratelimitNetworkPolicy" . }}
{{- include "curtail.autoscaler" $ofPods }}
{{- include "curtail.podDisruptionBudget" $ofPods }}
{{- include "curtail.serviceAccount" $ofPods }}
{{- include "curtail.monitor" (list . "ratelimit" "/metrics") }}
{{- if eq .Values.counters.mode "bundled" }}
{{ include "curtail.bundledRedis" (list . "counters" "noeviction" "ratelimit") }}
{{- include "curtail.serviceAccount" (list . "counters") }}
{{- end }}
{{- include "curtail.checkRules" . }}
{{- end -}}

{{/* The domain that all rules must have: in the chart curtail, the one that its Envoy sends. */}}
{{- define "curtail.requiredDomain" -}}
{{- if hasKey .Values "edge" }}edge{{ end -}}
{{- end -}}

{{/* Where the limiters get their rules: `policies` (only in the chart curtail), `xds` or `file`. */}}
{{- define "curtail.rulesSource" -}}
{{- if and (hasKey .Values "edge") (include "curtail.usesPolicies" .) -}}
policies
{{- else if (.Values.ratelimit.xds).server -}}
xds
{{- else -}}
file
{{- end -}}
{{- end -}}

{{- define "curtail.rulesConfigMap" -}}
{{- if and (eq (include "curtail.rulesSource" .) "file") (not .Values.ratelimit.existingRules) }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  {{- include "curtail.metadata" (list . "ratelimit") | nindent 2 }}
data:
  rate-limits.yaml: |
    {{- if .Values.ratelimit.rules }}
    {{- .Values.ratelimit.rules | trim | nindent 4 }}
    {{- else if include "curtail.requiredDomain" . }}
    {{- include "curtail.shippedRules" . | trim | nindent 4 }}
    {{- else }}
    # No rules: every request is admitted.
    domain: none
    descriptors: []
    {{- end }}
{{- end }}
{{- end -}}

{{/* Peers that may call the rate limiter: in the chart curtail, its edge; empty: all. */}}
{{- define "curtail.ratelimitClients" -}}
{{- if hasKey .Values "edge" -}}
{{- include "curtail.peers" (list . "edge") -}}
{{- else if .Values.networkPolicy.clients -}}
{{- toYaml .Values.networkPolicy.clients -}}
{{- end -}}
{{- end -}}

{{- define "curtail.ratelimitNetworkPolicy" -}}
{{- if .Values.networkPolicy.enabled }}
---
{{ include "curtail.networkPolicyHeader" (list . "ratelimit") }}
  ingress:
    - ports:
        {{- $ports := ternary (list 8081) (list 8080 8081) (hasKey .Values "edge") }}
        {{- include "curtail.tcpPorts" $ports | trim | nindent 8 }}
      {{- with include "curtail.ratelimitClients" . | trim }}
      from:
        {{- . | nindent 8 }}
      {{- end }}
    {{- with (.Values.networkPolicy).adminFrom }}
    - from:
        {{- toYaml . | nindent 8 }}
      ports:
        {{- include "curtail.tcpPorts" (list 9090) | trim | nindent 8 }}
    {{- end }}
    {{- include "curtail.metricsIngress" (list . 9090) | nindent 4 }}
  egress:
    {{- include "curtail.redisEgress" (list . "counters") | nindent 4 }}
    {{- $source := include "curtail.rulesSource" . }}
    {{- if eq $source "policies" }}
    - to:
        {{- include "curtail.peers" (list . "controller") | trim | nindent 8 }}
      ports:
        {{- include "curtail.tcpPorts" (list 18000) | trim | nindent 8 }}
    {{- else if eq $source "xds" }}
    {{- $xds := .Values.ratelimit.xds }}
    - ports:
        {{- include "curtail.tcpPorts" (default (list (regexFind "[0-9]+$" $xds.server)) $xds.ports) | trim | nindent 8 }}
    {{- end }}
    {{- include "curtail.dnsEgress" . | nindent 4 }}
    {{- include "curtail.extraEgress" . | nindent 4 }}
{{- end }}
{{- end -}}
