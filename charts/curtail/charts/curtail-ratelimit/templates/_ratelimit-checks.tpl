{{/* Checks that values.schema.json cannot express: combinations of values. Each returns its errors as a JSON list. */}}

{{/* (root): the errors in the values of the rate limiter. */}}
{{- define "curtail.ratelimitFaults" -}}
{{- $limiter := .Values.ratelimit -}}
{{- $domain := include "curtail.requiredDomain" . -}}
{{- $faults := list -}}
{{- if not .Values.image.repository -}}
{{- $faults = append $faults "image.repository must name the image, which docs/image.md describes how to build" -}}
{{- end -}}
{{- if and $limiter.rules $limiter.existingRules -}}
{{- $faults = append $faults "ratelimit.rules must be empty if ratelimit.existingRules names a ConfigMap: set only one of them" -}}
{{- end -}}
{{- if and ($limiter.xds).server (or $limiter.rules $limiter.existingRules) -}}
{{- $faults = append $faults "ratelimit.rules and ratelimit.existingRules must be empty if ratelimit.xds.server is set: it sends the rules" -}}
{{- end -}}
{{- if not (or $domain $limiter.rules $limiter.existingRules ($limiter.xds).server) -}}
{{- $faults = append $faults "one of ratelimit.rules, ratelimit.existingRules and ratelimit.xds.server must be set" -}}
{{- end -}}
{{- with $limiter.rules -}}
{{- $parsed := fromYaml . -}}
{{- $found := get $parsed "domain" -}}
{{- if hasKey $parsed "Error" -}}
{{- $faults = append $faults (printf "ratelimit.rules must be YAML: %s" $parsed.Error) -}}
{{- else if and $domain (ne (toString $found) $domain) -}}
{{- $faults = append $faults (printf "ratelimit.rules must have the domain %s, which Envoy sends: with %s every request would be admitted" $domain (default "none" $found)) -}}
{{- else if not $found -}}
{{- $faults = append $faults "ratelimit.rules must have a domain: the one that Envoy sends" -}}
{{- else if not (kindIs "slice" (get $parsed "descriptors")) -}}
{{- $faults = append $faults "ratelimit.rules must have a list of descriptors; an empty one limits nothing" -}}
{{- end -}}
{{- end -}}
{{- $faults = concat $faults (include "curtail.scalingFaults" (list . "ratelimit") | fromJsonArray) -}}
{{- concat $faults (include "curtail.redisFaults" (list . "counters") | fromJsonArray) | toJson -}}
{{- end -}}

{{/* (list root component): the errors in its autoscaling. */}}
{{- define "curtail.scalingFaults" -}}
{{- $name := index . 1 -}}
{{- $scaling := (index (index . 0).Values $name).autoscaling -}}
{{- $faults := list -}}
{{- if and $scaling.enabled (gt (int $scaling.minReplicas) (int $scaling.maxReplicas)) -}}
{{- $faults = append $faults (printf "%s.autoscaling.minReplicas must not be above %s.autoscaling.maxReplicas, %d" $name $name (int $scaling.maxReplicas)) -}}
{{- end -}}
{{- $faults | toJson -}}
{{- end -}}

{{/* (list root "cache" or "counters"): the errors in the values of that Redis. */}}
{{- define "curtail.redisFaults" -}}
{{- $name := index . 1 -}}
{{- $redis := index (index . 0).Values $name -}}
{{- $faults := list -}}
{{- if eq $redis.mode "external" -}}
{{- if eq (not $redis.external.url) (not $redis.external.existingSecret) -}}
{{- $faults = append $faults (printf "either %s.external.url or %s.external.existingSecret must be given, as %s.mode is external" $name $name $name) -}}
{{- end -}}
{{- if and (not $redis.external.existingSecret) (or $redis.external.sentinelAuthKey $redis.external.authKey) -}}
{{- $faults = append $faults (printf "%s.external.existingSecret must name the Secret with the keys of the passwords" $name) -}}
{{- end -}}
{{- end -}}
{{- $faults | toJson -}}
{{- end -}}

{{/* (list of errors): fails the rendering with all errors, if there are any. */}}
{{- define "curtail.failIf" -}}
{{- if . -}}
{{- fail (printf "\n\nConflicting values:\n- %s\n" (join "\n- " .)) -}}
{{- end -}}
{{- end -}}
