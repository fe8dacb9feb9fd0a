{{/* Names and labels. Every object's name begins with the full name; a component is `webhook` or `controller`. */}}

{{- define "fieldwarden.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* 42 characters leave room for the longest ending. */}}
{{- define "fieldwarden.fullname" -}}
{{- $name := include "fieldwarden.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 42 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 42 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 42 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "fieldwarden.webhook" -}}
{{- include "fieldwarden.fullname" . }}-webhook
{{- end -}}

{{- define "fieldwarden.controller" -}}
{{- include "fieldwarden.fullname" . }}-controller
{{- end -}}

{{/* Whether the webhook's pods tell the cluster what they find. */}}
{{- define "fieldwarden.tells" -}}
{{- if or (ne .Values.reports.format "none") .Values.reports.events }}yes{{ end -}}
{{- end -}}

{{/* The API group of the reports; empty where none are written. */}}
{{- define "fieldwarden.reportGroup" -}}
{{- get (dict "openreports" "openreports.io" "policyreport" "wgpolicyk8s.io") .Values.reports.format -}}
{{- end -}}

{{/* The documents of reports.definitions, as a list; one that cannot be read has the key Error, as fromYaml makes it. */}}
{{- define "fieldwarden.reportDefinitions" -}}
{{- $found := list -}}
{{- range regexSplit "(?m)^---.*$" (default "" .Values.reports.definitions) -1 -}}
{{- with fromYaml . }}{{ $found = append $found . }}{{ end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{/* Whether the webhook's pods talk to the API server at all. */}}
{{- define "fieldwarden.talks" -}}
{{- if or .Values.policies.fromCluster (include "fieldwarden.tells" .) }}yes{{ end -}}
{{- end -}}

{{/* The Secret that is mounted into the webhook's pods. */}}
{{- define "fieldwarden.tlsSecret" -}}
{{- if eq .Values.certificates.source "secret" -}}
{{- .Values.certificates.existingSecret -}}
{{- else -}}
{{- include "fieldwarden.webhook" . }}-tls
{{- end -}}
{{- end -}}

{{- define "fieldwarden.authoritySecret" -}}
{{- include "fieldwarden.fullname" . }}-authority
{{- end -}}

{{/* (dict "root" $ "component" "webhook"): the account that a component's pods run as. */}}
{{- define "fieldwarden.account" -}}
{{- $account := (index .root.Values .component).serviceAccount -}}
{{- default (include (printf "fieldwarden.%s" .component) .root) $account.name -}}
{{- end -}}

{{/* (dict "root" $ "component" ""): what a selector names. It never changes while a release lives. */}}
{{- define "fieldwarden.selector" -}}
app.kubernetes.io/name: {{ include "fieldwarden.name" .root | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end -}}

{{/* (dict "root" $ "component" "webhook" "more" (dict)): labels of an object. */}}
{{- define "fieldwarden.labels" -}}
{{- $own := dict
  "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-")
  "app.kubernetes.io/version" .root.Chart.AppVersion
  "app.kubernetes.io/managed-by" .root.Release.Service
  "app.kubernetes.io/part-of" "fieldwarden" -}}
{{- $selector := include "fieldwarden.selector" . | fromYaml -}}
{{- mergeOverwrite (dict) (.root.Values.commonLabels | default dict) (.more | default dict) $own $selector | toYaml -}}
{{- end -}}

{{/* (dict "root" $ "component" "webhook" "more" (dict)): labels of pods, without what changes with every version of the chart. */}}
{{- define "fieldwarden.podLabels" -}}
{{- $own := dict "app.kubernetes.io/version" .root.Chart.AppVersion "app.kubernetes.io/part-of" "fieldwarden" -}}
{{- $selector := include "fieldwarden.selector" . | fromYaml -}}
{{- mergeOverwrite (dict) (.root.Values.commonLabels | default dict) (.more | default dict) $own $selector | toYaml -}}
{{- end -}}

{{/* (dict "root" $ "component" "webhook" "name" "x" "labels" (dict) "annotations" (dict) "cluster" false): metadata of an object. */}}
{{- define "fieldwarden.metadata" -}}
name: {{ .name }}
{{- if not .cluster }}
namespace: {{ .root.Release.Namespace }}
{{- end }}
labels:
  {{- include "fieldwarden.labels" (dict "root" .root "component" .component "more" .labels) | nindent 2 }}
{{- with merge (dict) (.annotations | default dict) (.root.Values.commonAnnotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
