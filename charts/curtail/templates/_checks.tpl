{{/* Checks that values.schema.json cannot express: combinations of values. All errors are reported together. */}}
{{- define "curtail.checks" -}}
{{- $v := .Values -}}
{{- $faults := list -}}
{{- if and $v.edge.tls.enabled (not (include "curtail.edgeSecret" .)) -}}
{{- $faults = append $faults "edge.tls.existingSecret must name a Secret of the type kubernetes.io/tls, as edge.tls.enabled is true and edge.certificate.enabled is false" -}}
{{- end -}}
{{- $faults = concat $faults (include "curtail.ratelimitFaults" . | fromJsonArray) -}}
{{- $faults = concat $faults (include "curtail.ingressFaults" . | fromJsonArray) -}}
{{- $faults = concat $faults (include "curtail.limitFaults" . | fromJsonArray) -}}
{{- $faults = concat $faults (include "curtail.allowanceFaults" . | fromJsonArray) -}}
{{- $faults = concat $faults (include "curtail.ceilingFaults" . | fromJsonArray) -}}
{{- $faults = concat $faults (include "curtail.ruleFaults" . | fromJsonArray) -}}
{{- $faults = concat $faults (include "curtail.memoryFaults" . | fromJsonArray) -}}
{{- $faults = concat $faults (include "curtail.storageFaults" . | fromJsonArray) -}}
{{- $faults = concat $faults (include "curtail.addressFaults" . | fromJsonArray) -}}
{{- $faults = concat $faults (include "curtail.scheduleFaults" . | fromJsonArray) -}}
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
{{- if has (include "curtail.namespace" .) $v.controller.watchNamespaces -}}
{{- $faults = append $faults (printf "controller.watchNamespaces must not name %s: the namespace of the release is always watched" (include "curtail.namespace" .)) -}}
{{- end -}}
{{- $faults = concat $faults (include "curtail.admissionFaults" . | fromJsonArray) -}}
{{- if and (ne $v.pools.mode "off") (not (hasKey $pools $v.create.codePool)) -}}
{{- $faults = append $faults (printf "create.codePool must be one of pools.list (%s): it is %s" (keys $pools | sortAlpha | join ", ") $v.create.codePool) -}}
{{- end -}}
{{- include "curtail.failIf" $faults -}}
{{- end -}}

{{/* (root): the errors in the resources of all components that are rendered, except the rate limiter. */}}
{{- define "curtail.memoryFaults" -}}
{{- $v := .Values -}}
{{- $faults := list -}}
{{- range $name := concat (list "edge" "create" "redirect") (ternary (list "controller") list (eq $v.pools.mode "controller")) -}}
{{- $faults = concat $faults (include "curtail.heapFaults" (list $name (get $v $name)) | fromJsonArray) -}}
{{- end -}}
{{- /* The heaps that the chart sets itself, in MiB. */}}
{{- $components := dict "edge.sidecar" $v.edge.sidecar "migrate" $v.migrate "tests" $v.tests -}}
{{- if ne $v.pools.mode "off" }}{{ $_ := set $components "pools" $v.pools }}{{ end -}}
{{- range $path, $heap := dict "edge.sidecar" 64 "migrate" 128 "pools" 128 "tests" 64 -}}
{{- $use := printf "%dMi, the JavaScript heap" $heap -}}
{{- $component := get $components $path | default dict -}}
{{- $faults = concat $faults (include "curtail.resourceFaults" (list $path $component (mul $heap 1048576) $use) | fromJsonArray) -}}
{{- end -}}
{{- if eq $v.cassandra.mode "bundled" -}}
{{- $heap := $v.cassandra.bundled.heap -}}
{{- $use := printf "cassandra.bundled.heap, %s" $heap -}}
{{- $bytes := include "curtail.bytes" (printf "%si" $heap) -}}
{{- $faults = concat $faults (include "curtail.resourceFaults" (list "cassandra.bundled" $v.cassandra.bundled $bytes $use) | fromJsonArray) -}}
{{- else if eq $v.cassandra.mode "k8ssandra" -}}
{{- $faults = concat $faults (include "curtail.resourceFaults" (list "cassandra.k8ssandra" $v.cassandra.k8ssandra) | fromJsonArray) -}}
{{- end -}}
{{- if ($v.loadTest).enabled -}}
{{- $faults = concat $faults (include "curtail.resourceFaults" (list "loadTest" $v.loadTest) | fromJsonArray) -}}
{{- end -}}
{{- $faults | toJson -}}
{{- end -}}

{{/* (root): the errors in the ceiling of requests, which no rate of one client may exceed. */}}
{{- define "curtail.ceilingFaults" -}}
{{- $ceiling := int .Values.edge.localLimits.ceilingPerSecond -}}
{{- $local := include "curtail.localLimits" . | fromYaml -}}
{{- $faults := list -}}
{{- range $name := list "createPerSecond" "redirectPerSecond" -}}
{{- if lt $ceiling (get $local $name | int) -}}
{{- $faults = append $faults (printf "edge.localLimits.ceilingPerSecond must be at least %d, as edge.localLimits.%s or ratelimit.limits.%s: it is %d" (get $local $name | int) $name $name $ceiling) -}}
{{- end -}}
{{- end -}}
{{- $faults | toJson -}}
{{- end -}}

{{/*
(root): the local limits that are below those of ratelimit.rules. Envoy applies the local limits to
calls that time out, so that they would deny requests that the rules admit. Only token buckets have a
burst: a window, such as a quota per day, is compared by its rate. No local limit is above 1,000,000.
*/}}
{{- define "curtail.ruleFaults" -}}
{{- $local := include "curtail.localLimits" . | fromYaml -}}
{{- $seconds := dict "second" 1 "minute" 60 "hour" 3600 "day" 86400 -}}
{{- $faults := list -}}
{{- range $rule := include "curtail.routeRules" . | fromJsonArray -}}
{{- $limit := $rule.limit -}}
{{- $requests := int64 $limit.requests_per_unit -}}
{{- $unit := get $seconds (lower (toString $limit.unit)) -}}
{{- $rateName := printf "%sPerSecond" $rule.prefix -}}
{{- if eq $rule.prefix "report" }}{{ $rateName = "reportPerHour" }}{{ end -}}
{{- if and $unit (not $limit.unlimited) -}}
{{- $rate := divf (mul $requests (ternary 3600 1 (eq $rule.prefix "report"))) $unit | ceil | int -}}
{{- $compared := dict $rateName $rate -}}
{{- if eq (toString $limit.algorithm) "token_bucket" }}{{ $_ := set $compared (printf "%sBurst" $rule.prefix) (default $requests $limit.burst) }}{{ end -}}
{{- range $name, $least := $compared -}}
{{- if and (lt (get $local $name | int) (int $least)) (le (int $least) 1000000) -}}
{{- $faults = append $faults (printf "edge.localLimits.%s must be at least %d, as the limit %s in ratelimit.rules: it is %d" $name (int $least) $rule.path (get $local $name | int)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $faults | toJson -}}
{{- end -}}

{{/* (root): the limits in ratelimit.rules that a local limit corresponds to, as a JSON list. */}}
{{- define "curtail.routeRules" -}}
{{- $parsed := fromYaml (.Values.ratelimit.rules | default "") -}}
{{- $found := list -}}
{{- range $route := ternary $parsed.descriptors list (kindIs "slice" $parsed.descriptors) -}}
{{- if and (kindIs "map" $route) (eq (toString $route.key) "route") (not $route.shadow_mode) -}}
{{- $value := toString $route.value -}}
{{- if and (eq $value "create") (kindIs "map" $route.rate_limit) -}}
{{- $found = append $found (dict "prefix" "createTotal" "path" "route=create" "limit" $route.rate_limit) -}}
{{- end -}}
{{- range $client := ternary $route.descriptors list (kindIs "slice" $route.descriptors) -}}
{{- if and (kindIs "map" $client) (eq (toString $client.key) "client") (not $client.value) (not $client.shadow_mode) (kindIs "map" $client.rate_limit) (has $value (list "create" "report" "redirect")) -}}
{{- $found = append $found (dict "prefix" $value "path" (printf "route=%s,client" $value) "limit" $client.rate_limit) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $found | toJson -}}
{{- end -}}

{{/* (root): what the refill Jobs have that controller.admissionPolicy does not allow, as a JSON list. */}}
{{- define "curtail.admissionFaults" -}}
{{- $faults := list -}}
{{- if (.Values.controller.admissionPolicy).enabled -}}
{{- if ne .Values.pools.mode "controller" -}}
{{- $faults = append $faults (printf "controller.admissionPolicy.enabled must be false if pools.mode is %s: only the mode controller has a controller" .Values.pools.mode) -}}
{{- end -}}
{{- $pod := (include "curtail.refillPod" (list .) | fromYaml).spec -}}
{{- range $pod.volumes -}}
{{- if not (or .secret .configMap (hasKey . "emptyDir") .downwardAPI) -}}
{{- $faults = append $faults (printf "podDefaults and pools.pod must have only volumes of Secrets, ConfigMaps, emptyDir and downwardAPI, as controller.admissionPolicy.enabled is true: %s is none of them" .name) -}}
{{- end -}}
{{- end -}}
{{- range concat $pod.containers (default list $pod.initContainers) -}}
{{- $security := .securityContext | default dict -}}
{{- if or .lifecycle .livenessProbe .readinessProbe .startupProbe $security.privileged ($security.capabilities).add -}}
{{- $faults = append $faults (printf "podDefaults and pools.pod must give containers no lifecycle, probes, privileges and added capabilities, as controller.admissionPolicy.enabled is true: %s has one" .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $faults | toJson -}}
{{- end -}}

{{/* (root): the error in the size of Cassandra's volumes, if it has no unit. */}}
{{- define "curtail.storageFaults" -}}
{{- $mode := .Values.cassandra.mode -}}
{{- $size := ((get .Values.cassandra $mode | default dict).storage).size -}}
{{- $faults := list -}}
{{- if and (ne $mode "external") $size (lt (include "curtail.quantity" $size | float64) 1048576.0) -}}
{{- $faults = append $faults (printf "cassandra.%s.storage.size must be at least 1Mi: it is %v; append a unit, such as Gi" $mode $size) -}}
{{- end -}}
{{- $faults | toJson -}}
{{- end -}}

{{/* (root): the errors in hosts, ports and networks. */}}
{{- define "curtail.addressFaults" -}}
{{- $v := .Values -}}
{{- $faults := list -}}
{{- $port := regexReplaceAll "^https?://" $v.baseUrl "" | regexFind ":[^]:]+$" -}}
{{- if and $port (or (not (regexMatch "^:0*[1-9][0-9]{0,4}$" $port)) (gt (regexReplaceAll "^:0*" $port "" | int) 65535)) -}}
{{- $faults = append $faults (printf "baseUrl must have a port from 1 to 65535, or none: it is %s" $v.baseUrl) -}}
{{- end -}}
{{- $names := dict "global.imageRegistry" ($v.global).imageRegistry "image.repository" $v.image.repository "edge.image.repository" $v.edge.image.repository -}}
{{- range $store := list "cassandra" "cache" "counters" -}}
{{- $values := get $v $store -}}
{{- if eq $values.mode "bundled" -}}
{{- $_ := set $names (printf "%s.bundled.image.repository" $store) (($values.bundled).image).repository -}}
{{- end -}}
{{- end -}}
{{- range $path, $name := $names -}}
{{- if contains "://" (toString $name) -}}
{{- $faults = append $faults (printf "%s must have no scheme: it is %s" $path $name) -}}
{{- end -}}
{{- end -}}
{{- if eq $v.cassandra.mode "external" -}}
{{- range $v.cassandra.external.contactPoints -}}
{{- if regexMatch "^[^:]*:[^:]*$" . -}}
{{- $faults = append $faults (printf "cassandra.external.contactPoints must be host names or addresses without a port, which cassandra.external.port sets: one is %s" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- concat $faults (include "curtail.serviceFaults" . | fromJsonArray) | toJson -}}
{{- end -}}

{{/* (root): the errors in the Service of the edge. Fields in edge.service.spec replace others. */}}
{{- define "curtail.serviceFaults" -}}
{{- $service := .Values.edge.service -}}
{{- $spec := $service.spec | default dict -}}
{{- $type := default $service.type $spec.type -}}
{{- $faults := list -}}
{{- if and (eq $type "LoadBalancer") (not $spec.loadBalancerSourceRanges) -}}
{{- range $service.loadBalancerSourceRanges -}}
{{- if not (regexMatch "^([0-9.]+/0*([0-9]|[12][0-9]|3[0-2])|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*/0*([0-9]|[1-9][0-9]|1[01][0-9]|12[0-8]))$" (trim .)) -}}
{{- $faults = append $faults (printf "edge.service.loadBalancerSourceRanges must have networks such as 192.0.2.0/24: one is %s" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.edge.tls.enabled (not $spec.ports) -}}
{{- if eq (int $service.httpPort) (int $service.httpsPort) -}}
{{- $faults = append $faults (printf "edge.service.httpPort and edge.service.httpsPort must differ, as edge.tls.enabled is true: both are %d" (int $service.httpPort)) -}}
{{- end -}}
{{- if and (ne $type "ClusterIP") (int $service.httpNodePort) (eq (int $service.httpNodePort) (int $service.httpsNodePort)) -}}
{{- $faults = append $faults (printf "edge.service.httpNodePort and edge.service.httpsNodePort must differ, as edge.tls.enabled is true: both are %d" (int $service.httpNodePort)) -}}
{{- end -}}
{{- end -}}
{{- $faults | toJson -}}
{{- end -}}

{{/* (root): the schedules of the CronJobs that Kubernetes rejects. */}}
{{- define "curtail.scheduleFaults" -}}
{{- $faults := list -}}
{{- if eq .Values.pools.mode "cron" -}}
{{- $months := "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec" -}}
{{- $fields := list -}}
{{- range $number := list "0*[0-5]?[0-9]" "0*(1?[0-9]|2[0-3])" "0*([1-9]|[12][0-9]|3[01])" (printf "0*([1-9]|1[0-2])|%s" $months) "0*[0-6]|sun|mon|tue|wed|thu|fri|sat" -}}
{{- $range := printf "([*?](-[^,/ ]*)?|(%s)(-(%s))?)(/0*[1-9][0-9]*)?" $number $number -}}
{{- $fields = append $fields (printf ",*%s(,+%s)*,*" $range $range) -}}
{{- end -}}
{{- $schedule := printf "^(%s|@(yearly|annually|monthly|weekly|daily|midnight|hourly))$" (join " " $fields) -}}
{{- range .Values.pools.list -}}
{{- if and .schedule (not (regexMatch $schedule (lower .schedule))) -}}
{{- $faults = append $faults (printf "pools.list: the schedule of %s must have a minute, an hour, a day of the month, a month and a day of the week from 0 to 6, such as */5 * * * *, or be a name such as @hourly: it is %s" .name .schedule) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $faults | toJson -}}
{{- end -}}
