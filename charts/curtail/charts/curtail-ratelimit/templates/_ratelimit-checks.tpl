{{/* Checks that values.schema.json cannot express: combinations of values. Each returns its errors as a JSON list. */}}

{{/* (root): the errors in the values of the rate limiter. */}}
{{- define "curtail.ratelimitFaults" -}}
{{- $limiter := .Values.ratelimit -}}
{{- $domain := include "curtail.requiredDomain" . -}}
{{- $faults := list -}}
{{- if and $limiter.rules $limiter.existingRules -}}
{{- $faults = append $faults "ratelimit.rules must be empty if ratelimit.existingRules names a ConfigMap: set only one of them" -}}
{{- end -}}
{{- if and ($limiter.xds).server (or $limiter.rules $limiter.existingRules) -}}
{{- $faults = append $faults "ratelimit.rules and ratelimit.existingRules must be empty if ratelimit.xds.server is set: it sends the rules" -}}
{{- end -}}
{{- if and .Release.IsUpgrade (not (or $domain $limiter.rules $limiter.existingRules ($limiter.xds).server)) -}}
{{- $faults = append $faults "one of ratelimit.rules, ratelimit.existingRules and ratelimit.xds.server must be set: without rules an upgrade would admit every request" -}}
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
{{- $faults = concat $faults (include "curtail.accountFaults" . | fromJsonArray) -}}
{{- $faults = concat $faults (include "curtail.heapFaults" (list "ratelimit" $limiter) | fromJsonArray) -}}
{{- concat $faults (include "curtail.redisFaults" (list . "counters") | fromJsonArray) | toJson -}}
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
{{- else -}}
{{- $max := $redis.bundled.maxMemory -}}
{{- $bytes := include "curtail.bytes" (trimSuffix "b" $max | upper | printf "%si") -}}
{{- $use := printf "%s.bundled.maxMemory, %s" $name $max -}}
{{- $faults = concat $faults (include "curtail.resourceFaults" (list (printf "%s.bundled" $name) $redis.bundled $bytes $use) | fromJsonArray) -}}
{{- end -}}
{{- $faults | toJson -}}
{{- end -}}

{{/* (list path component): the errors in the resources and the JavaScript heap of a component. */}}
{{- define "curtail.heapFaults" -}}
{{- $heap := (index . 1).heapMebibytes -}}
{{- $use := printf "%s.heapMebibytes, %d" (index . 0) (int $heap) -}}
{{- include "curtail.resourceFaults" (list (index . 0) (index . 1) (mul $heap 1048576) $use) -}}
{{- end -}}

{{/*
(list path component [bytes use]): the errors in the resources of a component, as a JSON list. Its
process uses the bytes of memory; `use` names the value that sets them.
*/}}
{{- define "curtail.resourceFaults" -}}
{{- $path := index . 0 -}}
{{- $resources := (index . 1).resources | default dict -}}
{{- $limits := $resources.limits | default dict -}}
{{- $faults := list -}}
{{- range $kind := list "requests" "limits" -}}
{{- $quantities := get $resources $kind | default dict -}}
{{- range $name, $_ := $quantities -}}
{{- if not (or (contains "/" $name) (has $name (list "cpu" "memory" "ephemeral-storage")) (hasPrefix "hugepages-" $name)) -}}
{{- $faults = append $faults (printf "%s.resources.%s must have only cpu, memory, ephemeral-storage, hugepages-* and names with a domain: %s is none of them" $path $kind $name) -}}
{{- end -}}
{{- end -}}
{{- $cpu := get $quantities "cpu" -}}
{{- if and $cpu (or (regexMatch "[A-Z]i?$" (toString $cpu)) (gt (include "curtail.quantity" $cpu | float64) 1024.0)) -}}
{{- $faults = append $faults (printf "%s.resources.%s.cpu must be at most 1024 cores, with the unit m or none: it is %v; append m for thousandths of a core" $path $kind $cpu) -}}
{{- end -}}
{{- $memory := get $quantities "memory" -}}
{{- $bytes := include "curtail.quantity" (default "0" $memory) | float64 -}}
{{- if and $memory (lt $bytes 1048576.0) (or $bytes (eq $kind "limits")) -}}
{{- $faults = append $faults (printf "%s.resources.%s.memory must be at least 1Mi: %v is %s bytes; append a unit, such as Mi" $path $kind $memory (include "curtail.quantity" $memory)) -}}
{{- end -}}
{{- end -}}
{{- $hasFaults := $faults -}}
{{- range $name, $request := $resources.requests -}}
{{- $limit := get $limits $name -}}
{{- if and $request $limit (not $hasFaults) (gt (include "curtail.quantity" $request | float64) (include "curtail.quantity" $limit | float64)) -}}
{{- $faults = append $faults (printf "%s.resources.requests.%s must not be above %s.resources.limits.%s, %v: it is %v" $path $name $path $name $limit $request) -}}
{{- end -}}
{{- end -}}
{{- if and (not $faults) $limits.memory (gt (len .) 2) (le (include "curtail.quantity" $limits.memory | float64) (index . 2 | float64)) -}}
{{- $faults = append $faults (printf "%s.resources.limits.memory must be above %s: it is %v" $path (index . 3) $limits.memory) -}}
{{- end -}}
{{- $faults | toJson -}}
{{- end -}}

{{/* (quantity): its value, for comparisons. */}}
{{- define "curtail.quantity" -}}
{{- $units := dict "" 1 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 -}}
{{- $units = merge $units (dict "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624 "Ei" 1152921504606846976) -}}
{{- $quantity := toString . -}}
{{- if kindIs "float64" . }}{{ $quantity = printf "%f" . }}{{ end -}}
{{- mulf (regexFind "^[0-9.]+" $quantity) (get $units (regexFind "[A-Za-z]*$" $quantity)) -}}
{{- end -}}

{{/* (quantity): its value in bytes; the API server may round it up. */}}
{{- define "curtail.bytes" -}}
{{- include "curtail.quantity" . | ceil -}}
{{- end -}}

{{/* (list of errors): fails the rendering with all errors, if there are any. */}}
{{- define "curtail.failIf" -}}
{{- if . -}}
{{- fail (printf "\n\nConflicting values:\n- %s\n" (join "\n- " .)) -}}
{{- end -}}
{{- end -}}
