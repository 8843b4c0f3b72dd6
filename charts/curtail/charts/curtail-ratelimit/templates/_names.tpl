{{/*
Names, labels and images. Each template takes the root, or a list of the root and more arguments.
The chart curtail includes the templates of this chart with its own root.
*/}}

{{- define "curtail.name" -}}
{{ default "curtail" .Values.nameOverride }}
{{- end -}}

{{- define "curtail.fullname" -}}
{{- $name := include "curtail.name" . -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- $wanted := default $full .Values.fullnameOverride -}}
{{- if gt (len $wanted) 28 -}}
{{ trunc 21 $wanted | trimSuffix "-" }}-{{ sha256sum $wanted | trunc 6 }}
{{- else -}}
{{ $wanted }}
{{- end -}}
{{- end -}}

{{/*
(root): not empty if the chart curtail contains this chart: it renders these objects itself, with its own
values. With --reuse-values, a release of 0.1.0 has only the folder.
*/}}
{{- define "curtail.isInCurtail" -}}
{{- if or (.Values.global).isInCurtail (regexMatch "(^|/)curtail/charts/" .Template.BasePath) }}true{{ end -}}
{{- end -}}

{{/* (root): the namespace of the objects, besides those for other namespaces. */}}
{{- define "curtail.namespace" -}}
{{ default .Release.Namespace .Values.namespaceOverride }}
{{- end -}}

{{/* (list root component): the labels that select a component's pods. */}}
{{- define "curtail.selectorLabels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "curtail.name" $root | quote }}
app.kubernetes.io/instance: {{ $root.Release.Name | quote }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/*
(list root component [labels]): all labels of an object. The values cannot replace those that select
pods, and the one by which Helm recognizes its objects.
*/}}
{{- define "curtail.labels" -}}
{{- $root := index . 0 -}}
{{- $chart := printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" -}}
{{- $labels := dict "app.kubernetes.io/part-of" "curtail" "app.kubernetes.io/version" $root.Chart.AppVersion "helm.sh/chart" $chart -}}
{{- $labels = mergeOverwrite $labels (default dict $root.Values.commonLabels) -}}
{{- if gt (len .) 2 }}{{ $labels = mergeOverwrite $labels (index . 2) }}{{ end -}}
{{- $fixed := include "curtail.selectorLabels" . | fromYaml -}}
{{- mergeOverwrite $labels $fixed (dict "app.kubernetes.io/managed-by" $root.Release.Service) | toYaml -}}
{{- end -}}

{{/* (list root component [suffix [annotations [labels [namespace]]]]): the metadata of an object. */}}
{{- define "curtail.metadata" -}}
{{- $root := index . 0 -}}
{{- $suffix := index . 1 -}}
{{- if gt (len .) 2 }}{{ $suffix = index . 2 }}{{ end -}}
{{- $annotations := deepCopy $root.Values.commonAnnotations -}}
{{- if gt (len .) 3 }}{{ $annotations = mergeOverwrite $annotations (index . 3) }}{{ end -}}
{{- $labels := dict -}}
{{- if gt (len .) 4 }}{{ $labels = default dict (index . 4) }}{{ end -}}
{{- $namespace := include "curtail.namespace" $root -}}
{{- if gt (len .) 5 }}{{ $namespace = index . 5 }}{{ end -}}
name: {{ printf "%s-%s" (include "curtail.fullname" $root) $suffix | quote }}
namespace: {{ $namespace | quote }}
labels:
  {{- include "curtail.labels" (list $root (index . 1) $labels) | nindent 2 }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* (list root image): the reference of an image; global.imageRegistry replaces its registry. */}}
{{- define "curtail.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- $repository := $image.repository -}}
{{- with $root.Values.global.imageRegistry -}}
{{- $segments := splitList "/" $image.repository -}}
{{- $first := first $segments -}}
{{- if and (gt (len $segments) 1) (or (contains "." $first) (contains ":" $first) (eq $first "localhost")) -}}
{{- $repository = join "/" (rest $segments) -}}
{{- end -}}
{{- $repository = printf "%s/%s" (trimSuffix "/" .) $repository -}}
{{- end -}}
{{- if $image.digest -}}
{{ $repository }}@{{ $image.digest }}
{{- else -}}
{{ $repository }}:{{ default $root.Chart.AppVersion $image.tag }}
{{- end -}}
{{- end -}}

{{/* (list root image): image and imagePullPolicy of a container. */}}
{{- define "curtail.containerImage" -}}
image: {{ include "curtail.image" . | quote }}
imagePullPolicy: {{ (index . 1).pullPolicy }}
{{- end -}}

{{/* (list root component): the fully qualified name of a Service, which needs no search domains. */}}
{{- define "curtail.host" -}}
{{- $root := index . 0 -}}
{{ include "curtail.fullname" $root }}-{{ index . 1 }}.{{ include "curtail.namespace" $root }}.svc.{{ $root.Values.clusterDomain }}
{{- end -}}

{{/* (list workload): the minimum number of pods of a workload. */}}
{{- define "curtail.replicasMin" -}}
{{- $workload := index . 0 -}}
{{- $scaling := default dict $workload.autoscaling -}}
{{ ternary $scaling.minReplicas $workload.replicas (default false $scaling.enabled) | int }}
{{- end -}}

{{/* (list workload): the maximum number of pods of a workload. */}}
{{- define "curtail.replicasMax" -}}
{{- $workload := index . 0 -}}
{{ ternary $workload.autoscaling.maxReplicas $workload.replicas $workload.autoscaling.enabled | int }}
{{- end -}}
