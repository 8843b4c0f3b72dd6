{{/* Building blocks of NetworkPolicies. Ports are those of pods, not of Services. */}}

{{/* (list root component...): peers that are pods of this release. */}}
{{- define "curtail.peers" -}}
{{- $root := index . 0 -}}
{{- range rest . }}
- podSelector:
    matchLabels:
      {{- include "curtail.selectorLabels" (list $root .) | nindent 6 }}
{{- end }}
{{- end -}}

{{/* (list port...): ports over TCP. */}}
{{- define "curtail.tcpPorts" -}}
{{- range . }}
- { protocol: TCP, port: {{ . | int }} }
{{- end }}
{{- end -}}

{{/* The rule that allows DNS queries, to any address. */}}
{{- define "curtail.dnsEgress" -}}
- ports:
    - { protocol: UDP, port: 53 }
    - { protocol: TCP, port: 53 }
{{- end -}}

{{/* (list root "cache" or "counters"): the rule that allows egress to that Redis. */}}
{{- define "curtail.redisEgress" -}}
{{- $root := index . 0 -}}
{{- $redis := index $root.Values (index . 1) -}}
{{- if eq $redis.mode "bundled" -}}
- to:
    {{- include "curtail.peers" . | trim | nindent 4 }}
  ports:
    {{- include "curtail.tcpPorts" (list 6379) | trim | nindent 4 }}
{{- else -}}
- ports:
    {{- include "curtail.tcpPorts" $redis.external.ports | trim | nindent 4 }}
{{- end -}}
{{- end -}}

{{/* (list root port...): the rule that allows ingress from Prometheus. */}}
{{- define "curtail.metricsIngress" -}}
{{- $root := index . 0 -}}
{{- with $root.Values.networkPolicy.metricsFrom -}}
- from:
    {{- toYaml . | nindent 4 }}
  ports:
    {{- include "curtail.tcpPorts" (rest $) | trim | nindent 4 }}
{{- end -}}
{{- end -}}

{{/* (list root component [namespace]): a NetworkPolicy without its rules. */}}
{{- define "curtail.networkPolicyHeader" -}}
{{- $root := index . 0 -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- $namespace := include "curtail.namespace" $root }}
  {{- if gt (len .) 2 }}{{ $namespace = index . 2 }}{{ end }}
  {{- include "curtail.metadata" (list $root (index . 1) (index . 1) dict dict $namespace) | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "curtail.selectorLabels" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
{{- end -}}

{{- define "curtail.extraEgress" -}}
{{- with .Values.networkPolicy.extraEgress -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}
