{{/* Checks that values.schema.json cannot express: combinations of values. All errors are reported together. */}}
{{- define "curtail.checks" -}}
{{- $v := .Values -}}
{{- $faults := list -}}
{{- if and $v.edge.tls.enabled (not $v.edge.tls.existingSecret) -}}
{{- $faults = append $faults "edge.tls.existingSecret must name a Secret of the type kubernetes.io/tls, as edge.tls.enabled is true" -}}
{{- end -}}
{{- if and $v.ratelimit.rules $v.ratelimit.existingRules -}}
{{- $faults = append $faults "ratelimit.rules must be empty if ratelimit.existingRules names a ConfigMap: set only one of them" -}}
{{- end -}}
{{- with $v.ratelimit.rules -}}
{{- $parsed := fromYaml . -}}
{{- if hasKey $parsed "Error" -}}
{{- $faults = append $faults (printf "ratelimit.rules must be YAML: %s" $parsed.Error) -}}
{{- else if ne (toString (get $parsed "domain")) "edge" -}}
{{- $faults = append $faults (printf "ratelimit.rules must have the domain edge, which Envoy sends: with %s every request would be admitted" (default "none" (get $parsed "domain"))) -}}
{{- else if not (kindIs "slice" (get $parsed "descriptors")) -}}
{{- $faults = append $faults "ratelimit.rules must have a list of descriptors; an empty one limits nothing" -}}
{{- end -}}
{{- end -}}
{{- range $name := list "edge" "ratelimit" "create" "redirect" -}}
{{- $scaling := (index $v $name).autoscaling -}}
{{- if and $scaling.enabled (gt (int $scaling.minReplicas) (int $scaling.maxReplicas)) -}}
{{- $faults = append $faults (printf "%s.autoscaling.minReplicas must not be above %s.autoscaling.maxReplicas, %d" $name $name (int $scaling.maxReplicas)) -}}
{{- end -}}
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
{{- range $name := list "cache" "counters" -}}
{{- $redis := index $v $name -}}
{{- if eq $redis.mode "external" -}}
{{- if eq (not $redis.external.url) (not $redis.external.existingSecret) -}}
{{- $faults = append $faults (printf "either %s.external.url or %s.external.existingSecret must be given, as %s.mode is external" $name $name $name) -}}
{{- end -}}
{{- if and (not $redis.external.existingSecret) (or $redis.external.sentinelAuthKey $redis.external.authKey) -}}
{{- $faults = append $faults (printf "%s.external.existingSecret must name the Secret with the keys of the passwords" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
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
{{- if $faults -}}
{{- fail (printf "\n\nConflicting values:\n- %s\n" (join "\n- " $faults)) -}}
{{- end -}}
{{- end -}}
