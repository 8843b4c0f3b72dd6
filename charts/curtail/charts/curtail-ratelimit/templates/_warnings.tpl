{{/* (list root redis-names workloads): warnings of NOTES.txt that both charts can have, as a JSON list. */}}
{{- define "curtail.sharedWarnings" -}}
{{- $v := (index . 0).Values -}}
{{- $warnings := list -}}
{{- range $name := index . 1 -}}
{{- if eq (index $v $name).mode "bundled" -}}
{{- $warnings = append $warnings (printf "%s.mode is bundled: for trials only. It is one process, and loses its data when it stops." $name) -}}
{{- end -}}
{{- end -}}
{{- if not $v.networkPolicy.enabled -}}
{{- $warnings = append $warnings "networkPolicy.enabled is false: every pod of the cluster can reach the stores and the metrics." -}}
{{- end -}}
{{- if and $v.networkPolicy.enabled $v.monitoring.monitor.enabled (not $v.networkPolicy.metricsFrom) -}}
{{- $warnings = append $warnings "monitoring.monitor.enabled is true, but networkPolicy.metricsFrom is empty: add Prometheus to it, or it cannot scrape the pods." -}}
{{- end -}}
{{- range $name := index . 2 -}}
{{- if eq (include "curtail.replicasMin" (list (index $v $name)) | int) 1 -}}
{{- $warnings = append $warnings (printf "%s has a single pod: the service is interrupted whenever it stops." $name) -}}
{{- end -}}
{{- end -}}
{{- $warnings | toJson -}}
{{- end -}}

{{/* (list of warnings): the end of NOTES.txt. */}}
{{- define "curtail.renderWarnings" -}}
{{- with . }}
Warnings:
{{ range . }}
  - {{ . }}
{{- end }}
{{- end -}}
{{- end -}}
