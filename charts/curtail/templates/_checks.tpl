{{/* Checks that values.schema.json cannot express: combinations of values. All errors are reported together. */}}
{{- define "curtail.checks" -}}
{{- $v := .Values -}}
{{- $faults := list -}}
{{- if and $v.edge.tls.enabled (not $v.edge.tls.existingSecret) -}}
{{- $faults = append $faults "edge.tls.existingSecret must name a Secret of the type kubernetes.io/tls, as edge.tls.enabled is true" -}}
{{- end -}}
{{- $faults = concat $faults (include "curtail.ratelimitFaults" . | fromJsonArray) -}}
{{- $faults = concat $faults (include "curtail.limitFaults" . | fromJsonArray) -}}
{{- $faults = concat $faults (include "curtail.allowanceFaults" . | fromJsonArray) -}}
{{- range $name := list "edge" "create" "redirect" -}}
{{- $faults = concat $faults (include "curtail.scalingFaults" (list $ $name) | fromJsonArray) -}}
{{- end -}}
{{- if and (eq $v.cassandra.mode "external") (not $v.cassandra.external.contactPoints) -}}
{{- $faults = append $faults "cassandra.external.contactPoints must name 1 to 64 hosts, as cassandra.mode is external" -}}
{{- end -}}
{{- if and $v.cassandra.tls.enabled (not $v.cassandra.tls.existingSecret) -}}
{{- $faults = append $faults "cassandra.tls.existingSecret must name a Secret, as cassandra.tls.enabled is true" -}}
{{- end -}}
{{- if and (eq $v.cassandra.mode "bundled") (or $v.cassandra.tls.enabled $v.cassandra.auth.existingSecret) -}}
{{- $faults = append $faults "cassandra.tls.enabled must be false and cassandra.auth.existingSecret empty if cassandra.mode is bundled: it supports neither" -}}
{{- end -}}
{{- $faults = concat $faults (include "curtail.redisFaults" (list . "cache") | fromJsonArray) -}}
{{- $pools := dict -}}
{{- range $v.pools.list -}}
{{- if hasKey $pools .name -}}
{{- $faults = append $faults (printf "pools.list must name each pool once: %s occurs twice" .name) -}}
{{- end -}}
{{- $_ := set $pools .name true -}}
{{- end -}}
{{- if eq $v.pools.mode "controller" -}}
{{- range $v.pools.list -}}
{{- $least := add (include "curtail.lowWater" .) 1000 -}}
{{- if lt (int64 .target) (int64 $least) -}}
{{- $faults = append $faults (printf "pools.list: the target of %s must be at least %d, 1,000 above its lowWater, as pools.mode is controller: it is %d" .name (int64 $least) (int64 .target)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and $v.controller.watchNamespaces (ne $v.cassandra.mode "external") -}}
{{- $faults = append $faults (printf "controller.watchNamespaces must be empty if cassandra.mode is %s: refill Jobs of other namespaces cannot reach it" $v.cassandra.mode) -}}
{{- end -}}
{{- if has .Release.Namespace $v.controller.watchNamespaces -}}
{{- $faults = append $faults (printf "controller.watchNamespaces must not name %s: the namespace of the release is always watched" .Release.Namespace) -}}
{{- end -}}
{{- if and (ne $v.pools.mode "off") (not (hasKey $pools $v.create.codePool)) -}}
{{- $faults = append $faults (printf "create.codePool must be one of pools.list (%s): it is %s" (keys $pools | sortAlpha | join ", ") $v.create.codePool) -}}
{{- end -}}
{{- include "curtail.failIf" $faults -}}
{{- end -}}
