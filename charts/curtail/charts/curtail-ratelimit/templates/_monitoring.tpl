{{/* (list root kind renderMode): `true` if objects of this kind of Prometheus Operator are rendered, else empty. */}}
{{- define "curtail.isMonitored" -}}
{{- $root := index . 0 -}}
{{- $kind := index . 1 -}}
{{- $isInstalled := $root.Capabilities.APIVersions.Has (printf "monitoring.coreos.com/v1/%s" $kind) -}}
{{- if or $isInstalled (eq (index . 2) "alwaysRender") -}}
true
{{- else if eq (index . 2) "failIfMissing" -}}
{{- fail (printf "\n\nThis cluster has no kind %s in monitoring.coreos.com/v1, and its renderMode is failIfMissing: install Prometheus Operator's CRDs first, or set skipIfMissing or alwaysRender\n" $kind) -}}
{{- end -}}
{{- end -}}

{{/* (root): the namespace of the objects for Prometheus Operator and Grafana. */}}
{{- define "curtail.monitoringNamespace" -}}
{{ default (include "curtail.namespace" .) .Values.monitoring.namespace }}
{{- end -}}

{{/* (list root component path): the monitor of a component's pods, if monitors are enabled. */}}
{{- define "curtail.monitor" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $monitor := $root.Values.monitoring.monitor -}}
{{- if and $monitor.enabled (include "curtail.isMonitored" (list $root $monitor.kind $monitor.renderMode)) }}
---
apiVersion: monitoring.coreos.com/v1
kind: {{ $monitor.kind }}
metadata:
  {{- include "curtail.metadata" (list $root $component $component dict $monitor.labels (include "curtail.monitoringNamespace" $root)) | nindent 2 }}
spec:
  {{- if $root.Values.monitoring.namespace }}
  namespaceSelector:
    matchNames: [{{ include "curtail.namespace" $root | quote }}]
  {{- end }}
  selector:
    matchLabels:
      {{- include "curtail.selectorLabels" (list $root $component) | nindent 6 }}
  {{ ternary "endpoints" "podMetricsEndpoints" (eq $monitor.kind "ServiceMonitor") }}:
    - port: metrics
      path: {{ index . 2 }}
      interval: {{ $monitor.interval }}
      {{- with $monitor.scrapeTimeout }}
      scrapeTimeout: {{ . }}
      {{- end }}
      {{- with $monitor.relabelings }}
      relabelings:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $monitor.metricRelabelings }}
      metricRelabelings:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end }}
{{- end -}}
