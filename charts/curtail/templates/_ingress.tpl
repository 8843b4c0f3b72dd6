{{/* What is in front of the edge, if the chart creates it: a Gateway and its HTTPRoute, or an Ingress, with a Certificate. */}}

{{/*
(root): the hosts of the service, those of baseUrl and ownHosts, as a JSON list: without ports, in lower
case and without a final dot, as Kubernetes and cert-manager require.
*/}}
{{- define "curtail.hosts" -}}
{{- $hosts := list -}}
{{- range prepend .Values.ownHosts (urlParse .Values.baseUrl).host -}}
{{- $hosts = append $hosts (regexReplaceAll ":[0-9]+$" . "" | lower | trimSuffix ".") -}}
{{- end -}}
{{- uniq $hosts | toJson -}}
{{- end -}}

{{/* (root): the Secret that cert-manager writes; empty: the chart creates no Certificate. */}}
{{- define "curtail.certificateSecret" -}}
{{- with .Values.edge.certificate -}}
{{- if .enabled -}}
{{ default (printf "%s-edge-tls" (include "curtail.fullname" $)) .secretName }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* (list root "gateway" or "ingress"): the Secret with its certificate; empty: it has no TLS. */}}
{{- define "curtail.ingressSecret" -}}
{{- default (include "curtail.certificateSecret" (index . 0)) (index (index . 0).Values.edge (index . 1)).tlsSecret -}}
{{- end -}}

{{/* (root): the Secret with the certificate of Envoy. */}}
{{- define "curtail.edgeSecret" -}}
{{- default (include "curtail.certificateSecret" .) .Values.edge.tls.existingSecret -}}
{{- end -}}

{{/* (root): the specification of the Service of the edge. */}}
{{- define "curtail.edgeServiceSpec" -}}
{{- $service := .Values.edge.service -}}
type: {{ $service.type }}
{{- with $service.clusterIP }}
clusterIP: {{ . | quote }}
{{- end }}
{{- if ne $service.type "ClusterIP" }}
externalTrafficPolicy: {{ $service.externalTrafficPolicy }}
{{- end }}
{{- with $service.ipFamilyPolicy }}
ipFamilyPolicy: {{ . }}
{{- end }}
{{- with $service.trafficDistribution }}
trafficDistribution: {{ . }}
{{- end }}
{{- if eq $service.type "LoadBalancer" }}
{{- with $service.loadBalancerClass }}
loadBalancerClass: {{ . | quote }}
{{- end }}
{{- with $service.loadBalancerIP }}
loadBalancerIP: {{ . | quote }}
{{- end }}
{{- with $service.loadBalancerSourceRanges }}
loadBalancerSourceRanges:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
selector:
  {{- include "curtail.selectorLabels" (list . "edge") | nindent 2 }}
# Numbers, as Kubernetes before 1.32 does not resolve the named ports of sidecar containers.
ports:
  - name: http
    port: {{ $service.httpPort | int }}
    targetPort: 8080
    {{- include "curtail.nodePort" (list . "httpNodePort") | nindent 4 }}
  {{- if .Values.edge.tls.enabled }}
  - name: https
    port: {{ $service.httpsPort | int }}
    targetPort: 8443
    {{- include "curtail.nodePort" (list . "httpsNodePort") | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* (list root value): the node port of a port of the Service, if the values set it. */}}
{{- define "curtail.nodePort" -}}
{{- $service := (index . 0).Values.edge.service -}}
{{- with get $service (index . 1) | int -}}
{{- if ne $service.type "ClusterIP" -}}
nodePort: {{ . }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* (list root "http" or "https"): an attachment to the Gateway of the chart. */}}
{{- define "curtail.gatewayListener" -}}
- { name: {{ include "curtail.fullname" (index . 0) }}-edge, sectionName: {{ index . 1 }} }
{{- end -}}

{{/* (root): the errors in these values, as a JSON list. Values of earlier releases have none of them. */}}
{{- define "curtail.ingressFaults" -}}
{{- $edge := .Values.edge -}}
{{- $faults := list -}}
{{- range $name := list "ingress" "httpRoute" -}}
{{- if and (index $edge $name).enabled (eq (int $edge.trustedHops) 0) (not $edge.proxyProtocol) -}}
{{- $faults = append $faults (printf "edge.trustedHops must be at least 1 if edge.%s.enabled is true: with 0, the edge takes the address of that proxy for the address of every client, and all clients share one limit" $name) -}}
{{- end -}}
{{- end -}}
{{- if ($edge.gateway).enabled -}}
{{- if not $edge.gateway.className -}}
{{- $faults = append $faults "edge.gateway.className must name a GatewayClass, as edge.gateway.enabled is true" -}}
{{- end -}}
{{- if not ($edge.httpRoute).enabled -}}
{{- $faults = append $faults "edge.httpRoute.enabled must be true if edge.gateway.enabled is true: the Gateway would forward no request" -}}
{{- end -}}
{{- else if and ($edge.httpRoute).enabled (not $edge.httpRoute.parentRefs) -}}
{{- $faults = append $faults "edge.httpRoute.parentRefs must name a Gateway if edge.gateway.enabled is false" -}}
{{- end -}}
{{- if and ($edge.certificate).enabled (not $edge.certificate.issuerRef.name) -}}
{{- $faults = append $faults "edge.certificate.issuerRef.name must name an issuer of cert-manager, as edge.certificate.enabled is true" -}}
{{- end -}}
{{- if or ($edge.ingress).enabled ($edge.httpRoute).enabled ($edge.certificate).enabled -}}
{{- $faults = concat $faults (include "curtail.hostFaults" . | fromJsonArray) -}}
{{- end -}}
{{- if ($edge.gateway).enabled -}}
{{- $url := urlParse .Values.baseUrl -}}
{{- if and (eq $url.scheme "https") (not (include "curtail.ingressSecret" (list . "gateway"))) -}}
{{- $faults = append $faults (printf "edge.gateway.tlsSecret must name a Secret, or edge.certificate.enabled must be true, as edge.gateway.enabled is true and baseUrl is %s" .Values.baseUrl) -}}
{{- end -}}
{{- $port := ternary ":443" ":80" (eq $url.scheme "https") -}}
{{- if not (has (regexFind ":[0-9]+$" $url.host) (list "" $port)) -}}
{{- $faults = append $faults (printf "baseUrl must have no port if edge.gateway.enabled is true, whose ports are 80 for HTTP and 443 for HTTPS: it is %s" .Values.baseUrl) -}}
{{- end -}}
{{- end -}}
{{- $faults | toJson -}}
{{- end -}}

{{/* (root): the errors in the hosts of an Ingress, an HTTPRoute or a Certificate, as a JSON list. */}}
{{- define "curtail.hostFaults" -}}
{{- $hosts := include "curtail.hosts" . | fromJsonArray -}}
{{- $faults := list -}}
{{- $label := "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?" -}}
{{- range $hosts -}}
{{- $isName := regexMatch (printf "^%s([.]%s)*$" $label $label) . -}}
{{- if or (not $isName) (gt (len .) 253) (regexMatch "(^|[.])[0-9]+$" .) -}}
{{- $faults = append $faults (printf "baseUrl and ownHosts must contain DNS names, not IP addresses, if edge.ingress, edge.httpRoute or edge.certificate is enabled: %s is none" .) -}}
{{- end -}}
{{- end -}}
{{- if and (.Values.edge.httpRoute).enabled (gt (len $hosts) 16) -}}
{{- $faults = append $faults (printf "baseUrl and ownHosts must have at most 16 hosts if edge.httpRoute.enabled is true: they have %d" (len $hosts)) -}}
{{- end -}}
{{- $faults | toJson -}}
{{- end -}}
