{{/* Deployments up to their pod template, and the ServiceAccounts of all pods. */}}

{{/* (list root component): a component's own `pod` values, as YAML. */}}
{{- define "curtail.podOf" -}}
{{- $values := (index . 0).Values -}}
{{- $component := index . 1 -}}
{{- if has $component (list "cassandra" "cache" "counters") -}}
{{- (index $values $component).bundled.pod | toYaml -}}
{{- else if eq $component "load-test" -}}
{{- $values.loadTest.pod | toYaml -}}
{{- else if eq $component "check-rules" -}}
{{- $values.ratelimit.pod | toYaml -}}
{{- else if eq $component "tests" -}}
{}
{{- else -}}
{{- (index $values $component).pod | toYaml -}}
{{- end -}}
{{- end -}}

{{/* (list root component minReadySeconds): a Deployment up to its pod template. */}}
{{- define "curtail.deployment" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $workload := index $root.Values $component -}}
{{- $pod := include "curtail.podValues" (list $root $workload.pod) | fromYaml -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "curtail.metadata" (list $root $component $component (default dict $pod.deploymentAnnotations)) | nindent 2 }}
spec:
  {{- if not ($workload.autoscaling).enabled }}
  replicas: {{ $workload.replicas | int }}
  {{- end }}
  revisionHistoryLimit: {{ $pod.revisionHistoryLimit | int }}
  {{- with index . 2 | int }}
  minReadySeconds: {{ . }}
  {{- end }}
  progressDeadlineSeconds: 1200
  strategy:
    {{- default (dict "type" "RollingUpdate" "rollingUpdate" (dict "maxSurge" 1 "maxUnavailable" 0)) $pod.strategy | toYaml | nindent 4 }}
  selector:
    matchLabels:
      {{- include "curtail.selectorLabels" (list $root $component) | nindent 6 }}
{{- end -}}

{{/*
(list root component): the values of a component's ServiceAccount, as YAML. The name in podDefaults of
an account that another process creates is not the name of one that the chart creates.
*/}}
{{- define "curtail.serviceAccountValues" -}}
{{- $pod := include "curtail.podOf" . | fromYaml -}}
{{- $account := (include "curtail.podValues" (list (index . 0) $pod) | fromYaml).serviceAccount -}}
{{- $own := default dict $pod.serviceAccount -}}
{{- if and $account.create $own.create (not $own.name) }}{{ $account = omit $account "name" }}{{ end -}}
{{- toYaml $account -}}
{{- end -}}

{{/* (list root component): the name of a component's ServiceAccount. */}}
{{- define "curtail.serviceAccountName" -}}
{{- $component := index . 1 -}}
{{- $account := include "curtail.serviceAccountValues" . | fromYaml -}}
{{- $own := printf "%s-%s" (include "curtail.fullname" (index . 0)) $component -}}
{{- if not $account.create -}}
{{ default "default" $account.name }}
{{- else if eq $component "check-rules" -}}
{{- /* It runs before Helm has created the account of the limiters. */ -}}
{{ $own }}
{{- else -}}
{{ default $own $account.name }}
{{- end -}}
{{- end -}}

{{/* (list root component [namespace [annotations]]): the ServiceAccount of a component, if the chart creates it. */}}
{{- define "curtail.serviceAccount" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $account := include "curtail.serviceAccountValues" . | fromYaml -}}
{{- if $account.create -}}
{{- $annotations := mergeOverwrite (deepCopy $root.Values.serviceAccountAnnotations) (default dict $account.annotations) -}}
{{- $namespace := include "curtail.namespace" $root -}}
{{- if gt (len .) 2 }}{{ $namespace = index . 2 }}{{ end -}}
{{- if gt (len .) 3 }}{{ $annotations = index . 3 }}{{ end -}}
{{- $metadata := include "curtail.metadata" (list $root $component $component $annotations dict $namespace) | fromYaml }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- set $metadata "name" (include "curtail.serviceAccountName" (list $root $component)) | toYaml | nindent 2 }}
automountServiceAccountToken: false
{{- end -}}
{{- end -}}

{{/* (root): the components whose ServiceAccounts the chart may create, as a JSON list. */}}
{{- define "curtail.accountComponents" -}}
{{- $values := .Values -}}
{{- $components := list "ratelimit" -}}
{{- if hasKey $values "edge" }}{{ $components = concat $components (list "edge" "create" "redirect" "migrate" "tests") }}{{ end -}}
{{- if has ($values.pools).mode (list "cron" "controller") }}{{ $components = append $components "pools" }}{{ end -}}
{{- if eq (toString ($values.pools).mode) "controller" }}{{ $components = append $components "controller" }}{{ end -}}
{{- if ($values.loadTest).enabled }}{{ $components = append $components "load-test" }}{{ end -}}
{{- range $store := list "cassandra" "cache" "counters" -}}
{{- if eq (toString (get $values $store | default dict).mode) "bundled" }}{{ $components = append $components $store }}{{ end -}}
{{- end -}}
{{- $components | toJson -}}
{{- end -}}

{{/* (root): the errors in the ServiceAccounts, as a JSON list. */}}
{{- define "curtail.accountFaults" -}}
{{- $faults := list -}}
{{- with (.Values.podDefaults).serviceAccount -}}
{{- if and .name (ne (toString .create) "false") -}}
{{- $faults = append $faults "podDefaults.serviceAccount.name must be empty if podDefaults.serviceAccount.create is true: the chart cannot create one ServiceAccount several times; set the name under the `pod` of a workload" -}}
{{- end -}}
{{- end -}}
{{- if not $faults -}}
{{- $owners := dict -}}
{{- range $component := include "curtail.accountComponents" . | fromJsonArray -}}
{{- $name := include "curtail.serviceAccountName" (list $ $component) -}}
{{- if and (eq $component "controller") (eq $name "default") -}}
{{- $faults = append $faults "controller.pod.serviceAccount.name must not be default or empty if controller.pod.serviceAccount.create is false: every pod without its own ServiceAccount would have the controller's Roles" -}}
{{- else if (include "curtail.serviceAccountValues" (list $ $component) | fromYaml).create -}}
{{- if hasKey $owners $name -}}
{{- $faults = append $faults (printf "the ServiceAccounts of %s and %s must have different names, as the chart creates both: they are %s; set create to false for one of them" (get $owners $name) $component $name) -}}
{{- end -}}
{{- $_ := set $owners $name $component -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $faults | toJson -}}
{{- end -}}
